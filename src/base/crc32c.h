/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC32C (RFC 7143 11.2.3, 13.1). ISA-L where it is built in, else a table. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Running form: start with CRC32C_INIT, feed any number of pieces, then crc32c_end(). */
#define CRC32C_INIT 0xffffffffu

uint32_t crc32c_add(uint32_t crc, const void *bytes, size_t n);

/* The same without ISA-L: slow, small, and what the tests compare the fast one with. */
uint32_t crc32c_add_table(uint32_t crc, const void *bytes, size_t n);

/* The four digest bytes in the order in which they go on the wire. */
void crc32c_end(uint32_t crc, uint8_t digest[4]);

#endif
