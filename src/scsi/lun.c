/* SPDX-License-Identifier: BSD-2-Clause */
#include "scsi/lun.h"
#include "base/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WELL_KNOWN = 1, EXTENDED_FLAT = 2 };

int scsi_lun_pack(uint32_t number, uint8_t out[SCSI_LUN_SIZE])
{
    if (number > SCSI_LUN_MAX)
        return -1;
    memset(out, 0, SCSI_LUN_SIZE);
    if (number < 256) {
        out[1] = (uint8_t)number;
    } else if (number <= SCSI_LUN_FLAT_MAX) {
        store_be16(out, (uint16_t)(SCSI_LUN_FLAT << 14 | number));
    } else {
        out[0] = SCSI_LUN_EXTENDED << 6 | 1 << 4 | EXTENDED_FLAT; /* length 1: three bytes follow */
        store_be24(out + 1, number);
    }
    return 0;
}

void scsi_lun_unpack(struct scsi_lun *lun, const uint8_t in[SCSI_LUN_SIZE])
{
    memset(lun, 0, sizeof *lun);
    lun->method = (enum scsi_lun_method)(in[0] >> 6);
    lun->size = 2;
    switch (lun->method) {
    case SCSI_LUN_PERIPHERAL:
        lun->bus = in[0] & 0x3f;
        lun->number = in[1];
        break;
    case SCSI_LUN_FLAT:
        lun->number = load_be16(in) & SCSI_LUN_FLAT_MAX;
        break;
    case SCSI_LUN_LOGICAL_UNIT:
        lun->target = in[0] & 0x3f;
        lun->bus = in[1] >> 5;
        lun->number = in[1] & 0x1f;
        break;
    case SCSI_LUN_EXTENDED:
        lun->extended = in[0] & 0xf;
        lun->size = (uint8_t)(2 * ((in[0] >> 4 & 3) + 1));
        for (unsigned i = 1; i < lun->size; i++)
            lun->number = lun->number << 8 | in[i];
        break;
    }
    for (unsigned i = lun->size; i < SCSI_LUN_SIZE; i++)
        if (in[i])
            lun->deeper = true;
}

int scsi_lun_number(const uint8_t in[SCSI_LUN_SIZE], uint32_t *number)
{
    struct scsi_lun lun;
    bool simple;

    scsi_lun_unpack(&lun, in);
    simple = lun.method == SCSI_LUN_FLAT || (lun.method == SCSI_LUN_PERIPHERAL && lun.bus == 0) ||
             (lun.method == SCSI_LUN_EXTENDED && lun.extended == EXTENDED_FLAT && lun.size == 4);
    if (!simple || lun.deeper)
        return -1;
    *number = (uint32_t)lun.number;
    return 0;
}

char *scsi_lun_format(const uint8_t in[SCSI_LUN_SIZE], char buf[SCSI_LUN_TEXT])
{
    uint8_t usual[SCSI_LUN_SIZE];
    uint32_t number;

    if (scsi_lun_number(in, &number) == 0 && scsi_lun_pack(number, usual) == 0 &&
        memcmp(in, usual, sizeof usual) == 0)
        snprintf(buf, SCSI_LUN_TEXT, "%" PRIu32, number);
    else
        snprintf(buf, SCSI_LUN_TEXT, "0x%016" PRIx64, load_be64(in));
    return buf;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int parse_hex(const char *digits, uint8_t out[SCSI_LUN_SIZE])
{
    uint64_t value = 0;

    if (strlen(digits) != 2 * SCSI_LUN_SIZE)
        return -1;
    for (; *digits; digits++) {
        int d = hex_digit(*digits);
        if (d < 0)
            return -1;
        value = value << 4 | (uint64_t)d;
    }
    store_be64(out, value);
    return 0;
}

static int parse_decimal(const char *text, uint8_t out[SCSI_LUN_SIZE])
{
    uint32_t number = 0;

    if (!*text || strlen(text) > 8)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        number = number * 10 + (uint32_t)(*text - '0');
    }
    return scsi_lun_pack(number, out);
}

int scsi_lun_parse(const char *text, uint8_t out[SCSI_LUN_SIZE], struct lp_error *err)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

    if ((hex ? parse_hex(text + 2, out) : parse_decimal(text, out)) == 0)
        return 0;
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "\"%s\" is no LUN: give a number from 0 to %d, or 0x and the 16 "
                        "hexadecimal digits of its 8 bytes",
                        text, SCSI_LUN_MAX);
}
