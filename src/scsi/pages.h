/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What commands return as data, as values: INQUIRY and its VPD pages, capacities, mode pages, LUN
 * lists, extents, port groups.
 *
 * X_pack() writes the whole into a buffer that is large enough (SCSI_X_SIZE) and returns its
 * length; ALLOCATION LENGTH is for the caller to cut. X_unpack() judges every length against the
 * n bytes that came: 0, or -1 with a sentence that says what is wrong with the peer's answer; it
 * takes a short answer as far as the standard allows and never reads beyond n.
 */
#ifndef SCSI_PAGES_H
#define SCSI_PAGES_H

#include "scsi/scsi.h"

#include <lunpath/error.h>

/* ---- standard INQUIRY data; SPC-4 6.6.2 ---- */

enum {
    SCSI_INQUIRY_SIZE = 96,
    SCSI_VERSION_DESCRIPTORS = 8,
    SCSI_TYPE_DISK = 0x00,
    SCSI_TYPE_UNKNOWN = 0x1f,
};

struct scsi_inquiry {
    uint8_t qualifier;   /* 0: a LU is there; 3: none can be */
    uint8_t device_type; /* SCSI_TYPE_DISK ... */
    bool removable;
    uint8_t version; /* 6: SPC-4 */
    bool hisup;
    bool cmdque;
    bool protect;
    bool third_party_copy;
    uint8_t tpgs;                             /* 0 none, 1 implicit, 2 explicit, 3 both */
    char vendor[9], product[17], revision[5]; /* without trailing blanks, printable */
    unsigned descriptor_count;
    uint16_t descriptors[SCSI_VERSION_DESCRIPTORS];
};

size_t scsi_inquiry_pack(const struct scsi_inquiry *inquiry, uint8_t out[SCSI_INQUIRY_SIZE]);
int scsi_inquiry_unpack(struct scsi_inquiry *inquiry, const uint8_t *bytes, size_t n,
                        struct lp_error *err);

/* ---- VPD pages; SPC-4 7.8, SBC-3 6.6 ---- */

enum { SCSI_VPD_HEADER = 4, SCSI_VPD_MAX = 1024 };

/* The body of a VPD page whose header is page and fits n. -1: another page, or longer than came (a
 * page cut by our own allocation length is an error too). */
int scsi_vpd_body(uint8_t page, const uint8_t *bytes, size_t n, const uint8_t **body,
                  size_t *length, struct lp_error *err);

/* 00h: which pages there are. */
struct scsi_vpd_pages {
    uint8_t bits[32]; /* one a page code */
};

static inline bool scsi_vpd_has(const struct scsi_vpd_pages *pages, uint8_t page)
{
    return (pages->bits[page / 8] >> page % 8 & 1) != 0;
}

static inline void scsi_vpd_add(struct scsi_vpd_pages *pages, uint8_t page)
{
    pages->bits[page / 8] |= (uint8_t)(1u << page % 8);
}

enum { SCSI_VPD_PAGES_SIZE = SCSI_VPD_HEADER + 256 };
size_t scsi_vpd_pages_pack(const struct scsi_vpd_pages *pages, uint8_t device_type,
                           uint8_t out[SCSI_VPD_PAGES_SIZE]);
int scsi_vpd_pages_unpack(struct scsi_vpd_pages *pages, const uint8_t *bytes, size_t n,
                          struct lp_error *err);

/* 80h. text: at most 252 characters. unpack: cut to size - 1, made printable, blanks trimmed. */
size_t scsi_vpd_serial_pack(const char *text, uint8_t out[SCSI_VPD_HEADER + 252]);
int scsi_vpd_serial_unpack(char *text, size_t size, const uint8_t *bytes, size_t n,
                           struct lp_error *err);

/* 83h: one designator after another. SPC-4 7.8.6. */
enum scsi_designator_type {
    SCSI_DESIGNATOR_VENDOR = 0,
    SCSI_DESIGNATOR_T10 = 1,
    SCSI_DESIGNATOR_EUI64 = 2,
    SCSI_DESIGNATOR_NAA = 3,
    SCSI_DESIGNATOR_RELATIVE_PORT = 4,
    SCSI_DESIGNATOR_PORT_GROUP = 5,
    SCSI_DESIGNATOR_LU_GROUP = 6,
    SCSI_DESIGNATOR_MD5 = 7,
    SCSI_DESIGNATOR_NAME = 8,
};

enum { SCSI_OF_LU = 0, SCSI_OF_PORT = 1, SCSI_OF_TARGET = 2 };
enum { SCSI_CODE_BINARY = 1, SCSI_CODE_ASCII = 2, SCSI_CODE_UTF8 = 3, SCSI_PROTOCOL_ISCSI = 5 };

struct scsi_designator {
    uint8_t type;        /* enum scsi_designator_type */
    uint8_t association; /* SCSI_OF_LU ... */
    uint8_t code_set;
    bool protocol_valid; /* PIV */
    uint8_t protocol;
    uint8_t length;
    const uint8_t *bytes; /* unpacked: inside the page */
};

/* Appends one at *at (starts as SCSI_VPD_HEADER); false: it does not fit size. */
bool scsi_designator_pack(uint8_t *out, size_t size, size_t *at, const struct scsi_designator *d);
/* Writes the header for what was appended; returns the length. */
size_t scsi_vpd_device_id_finish(uint8_t *out, size_t at);
/* The next designator from *at (starts as 0) of a page body. False: no more, or the rest is
 * malformed. */
bool scsi_designator_next(const uint8_t *body, size_t length, size_t *at,
                          struct scsi_designator *d);

/* B0h. */
struct scsi_block_limits {
    bool wsnz;
    uint8_t max_compare_and_write; /* blocks */
    uint16_t granularity;          /* OPTIMAL TRANSFER LENGTH GRANULARITY, blocks */
    uint32_t max_transfer;         /* blocks; 0: not said */
    uint32_t optimal_transfer;
    uint32_t max_prefetch;
    uint32_t max_unmap_blocks;      /* 0: no UNMAP; FFFFFFFFh: no limit */
    uint32_t max_unmap_descriptors; /* likewise */
    uint32_t unmap_granularity;
    bool unmap_alignment_valid;
    uint32_t unmap_alignment;
    uint64_t max_write_same; /* 0: not said */
};

enum { SCSI_BLOCK_LIMITS_SIZE = 64 };
size_t scsi_block_limits_pack(const struct scsi_block_limits *limits,
                              uint8_t out[SCSI_BLOCK_LIMITS_SIZE]);
/* Also SBC-2's page of 12 bytes: the rest is 0 then. */
int scsi_block_limits_unpack(struct scsi_block_limits *limits, const uint8_t *bytes, size_t n,
                             struct lp_error *err);

/* B1h. */
struct scsi_block_characteristics {
    uint16_t rotation_rate; /* 0 not said, 1 non-rotating, else per minute */
    uint8_t form_factor;
    bool fuab, vbuls;
};

enum { SCSI_BLOCK_CHARACTERISTICS_SIZE = 64 };
size_t scsi_block_characteristics_pack(const struct scsi_block_characteristics *c,
                                       uint8_t out[SCSI_BLOCK_CHARACTERISTICS_SIZE]);
int scsi_block_characteristics_unpack(struct scsi_block_characteristics *c, const uint8_t *bytes,
                                      size_t n, struct lp_error *err);

/* B2h. */
struct scsi_provisioning {
    uint8_t threshold_exponent;
    bool lbpu, lbpws, lbpws10;
    uint8_t lbprz;
    bool anc_sup, dp;
    uint8_t type; /* 0 not said, 1 resource, 2 thin */
};

enum { SCSI_PROVISIONING_SIZE = 8 };
size_t scsi_provisioning_pack(const struct scsi_provisioning *p,
                              uint8_t out[SCSI_PROVISIONING_SIZE]);
int scsi_provisioning_unpack(struct scsi_provisioning *p, const uint8_t *bytes, size_t n,
                             struct lp_error *err);

/* ---- READ CAPACITY; SBC-3 5.16, 5.17 ---- */

struct scsi_capacity {
    uint64_t last_lba;
    uint32_t block_size;
    bool prot_en;
    uint8_t p_type;
    uint8_t physical_exponent;
    bool lbpme, lbprz;
    uint16_t lowest_aligned;
};

enum { SCSI_CAPACITY_10_SIZE = 8, SCSI_CAPACITY_16_SIZE = 32 };
size_t scsi_capacity_10_pack(const struct scsi_capacity *c, uint8_t out[SCSI_CAPACITY_10_SIZE]);
size_t scsi_capacity_16_pack(const struct scsi_capacity *c, uint8_t out[SCSI_CAPACITY_16_SIZE]);
/* last_lba FFFFFFFFh: ask READ CAPACITY(16). A block size that is not a power of two from 512 to
 * 65536, or a size in bytes above 2^63 - 1, is refused with a sentence. */
int scsi_capacity_10_unpack(struct scsi_capacity *c, const uint8_t *bytes, size_t n,
                            struct lp_error *err);
int scsi_capacity_16_unpack(struct scsi_capacity *c, const uint8_t *bytes, size_t n,
                            struct lp_error *err);

/* ---- mode pages; SPC-4 7.5, SBC-3 6.5 ---- */

enum {
    SCSI_MODE_HEADER_6 = 4,
    SCSI_MODE_HEADER_10 = 8,
    SCSI_MODE_MAX = 256,
    SCSI_MODE_WP = 0x80, /* DEVICE-SPECIFIC PARAMETER */
    SCSI_MODE_DPOFUA = 0x10,
};

struct scsi_mode_header {
    uint8_t medium_type;
    uint8_t device_specific; /* SCSI_MODE_WP, SCSI_MODE_DPOFUA */
    bool long_lba;
    uint16_t descriptor_length; /* bytes of block descriptors behind the header */
    size_t header_length;       /* 4 or 8 */
    size_t length;              /* of everything, as the header says; unpacked: at most n */
};

/* Writes the header in front of what follows it: header->length is known. Returns 4 or 8. */
size_t scsi_mode_header_pack(const struct scsi_mode_header *header, bool ten, uint8_t *out);
int scsi_mode_header_unpack(struct scsi_mode_header *header, bool ten, const uint8_t *bytes,
                            size_t n, struct lp_error *err);

struct scsi_mode_page {
    uint8_t code, subpage;
    bool saveable;        /* PS */
    const uint8_t *bytes; /* the page from its first byte */
    size_t length;        /* of the whole page, header included, as it says */
};

/* The next page from *at, of bytes[0..n). 1: *page is set; 0: no more; -1: it runs over n. */
int scsi_mode_page_next(const uint8_t *bytes, size_t n, size_t *at, struct scsi_mode_page *page);

struct scsi_caching {
    bool wce, rcd;
};
/* Fails when the page is not 08h or too short for these bits. */
int scsi_caching_unpack(struct scsi_caching *caching, const struct scsi_mode_page *page);

struct scsi_control {
    uint8_t tst;
    bool d_sense, swp, tas;
    uint8_t queue_algorithm;
};
int scsi_control_unpack(struct scsi_control *control, const struct scsi_mode_page *page);

/* ---- REPORT LUNS; SPC-4 6.33 ---- */

/* The LUNs that really came, 8 bytes each from *luns; *total is how many the target has. */
int scsi_report_luns_unpack(const uint8_t *bytes, size_t n, const uint8_t **luns, size_t *count,
                            size_t *total, struct lp_error *err);

/* ---- GET LBA STATUS; SBC-3 5.6 ---- */

enum { SCSI_LBA_MAPPED = 0, SCSI_LBA_DEALLOCATED = 1, SCSI_LBA_ANCHORED = 2 };

struct scsi_lba_extent {
    uint64_t lba;
    uint32_t blocks;
    uint8_t status;
};

enum { SCSI_LBA_STATUS_HEADER = 8, SCSI_LBA_EXTENT_SIZE = 16 };
/* count extents into out, which has room for them. */
size_t scsi_lba_status_pack(const struct scsi_lba_extent *extents, size_t count, uint8_t *out);
/* At most max of them; *count is how many were taken. */
int scsi_lba_status_unpack(struct scsi_lba_extent *extents, size_t max, size_t *count,
                           const uint8_t *bytes, size_t n, struct lp_error *err);

/* ---- REPORT TARGET PORT GROUPS; SPC-4 6.37 ---- */

enum scsi_alua_state {
    SCSI_ALUA_OPTIMIZED = 0,
    SCSI_ALUA_NON_OPTIMIZED = 1,
    SCSI_ALUA_STANDBY = 2,
    SCSI_ALUA_UNAVAILABLE = 3,
    SCSI_ALUA_OFFLINE = 0xe,
    SCSI_ALUA_TRANSITIONING = 0xf,
};

struct scsi_port_group {
    bool preferred;
    uint8_t state;     /* enum scsi_alua_state */
    uint8_t supported; /* bits: 1 optimized, 2 non-optimized, 4 standby, 8 unavailable ... */
    uint8_t reason;
    uint16_t group;
    unsigned port_count;
    const uint8_t *ports; /* unpacked: 4 bytes each, the last two are the relative port */
};

/* Walks the groups behind the header: 1, 0 (no more) or -1 (malformed). *at starts as 0. Takes both
 * header formats. */
int scsi_port_group_next(const uint8_t *bytes, size_t n, size_t *at, struct scsi_port_group *g);

#endif
