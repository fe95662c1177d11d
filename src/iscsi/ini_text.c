/* SPDX-License-Identifier: BSD-2-Clause */
/* Text exchanges of the full feature phase: SendTargets, MaxRecvDataSegmentLength (RFC 7143 6.4,
 * 11.10, 11.11, appendix C). Pairs stream through: a long answer needs no more memory than one
 * pair. */
#include "iscsi/ini_int.h"
#include "iscsi/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MAX = 65536, SEGMENT_MIN = 512 };

void ini_text(struct ini_conn *c, struct ini_text *text)
{
    ini_op_begin(&text->op, c->session, INI_KIND_TEXT, text->deadline_ns);
    text->result = INI_REFUSED;
    text->reject = 0;
    text->lun = 0;
    text->ttt = ISCSI_TAG_NONE;
    text->offered = 0;
    text->declared = 0;
    text->rounds = 0;
    text->more = false;
    bool sane =
        !text->mrdsl_in || (text->mrdsl_in >= SEGMENT_MIN && text->mrdsl_in <= c->hold_size);
    if (c->state != INI_CONN_FULL || c->session->state != INI_SESSION_OPEN || !sane) {
        ini_op_end(&text->op, INI_REFUSED);
        return;
    }
    text->op.conn = c;
    ini_list_append(&c->texts, &text->op);
    ini_start_text(c);
}

void ini_start_text(struct ini_conn *c)
{
    while (!c->text && c->texts.first) {
        struct ini_text *text = ini_text_of(c->texts.first);
        if (text->mrdsl_in) {
            c->segmentation++;
            int n = snprintf(c->declaration, sizeof c->declaration,
                             "MaxRecvDataSegmentLength=%" PRIu32, text->mrdsl_in);
            text->request = c->declaration;
            text->request_length = (uint32_t)n + 1;
        }
        ini_list_remove(&text->op);
        c->text = text;
        c->pair_length = 0;
        ini_list_append(&c->queue, &text->op);
    }
    if (ini_queue_ready(c))
        ini_wake(c);
}

void ini_text_request(struct ini_conn *c, struct ini_text *text, struct iscsi_tx_pdu *out)
{
    uint32_t n = text->request_length - text->offered;
    bool more = n > c->params.mrdsl_out;

    if (more)
        n = c->params.mrdsl_out;
    /* The end of our request is final; an empty one only asks to go on (6.2, C bit). */
    struct iscsi_text_request pdu = {
        .final = !more && !text->more,
        .more = more,
        .data_segment_length = n,
        .lun = text->lun,
        .itt = text->op.itt,
        .ttt = text->ttt,
        .cmd_sn = text->op.cmd_sn,
        .exp_stat_sn = c->exp_stat_sn,
    };

    iscsi_text_request_pack(out->bhs, &pdu);
    if (n) {
        text->whole.iov_base = (void *)(uintptr_t)text->request;
        text->whole.iov_len = text->request_length;
        out->iov = &text->whole;
        out->count = 1;
        out->offset = text->offered;
        out->length = n;
        out->owner = &text->op;
        text->op.tx_pieces++;
    }
    text->offered_before = text->offered;
    text->offered += n;
    /* The target may send by the new length as soon as it has read this. */
    if (text->mrdsl_in > c->params.mrdsl_in)
        iscsi_rx_set_limit(&c->rx, text->mrdsl_in);
}

/* The last request goes out again. */
void ini_text_again(struct ini_text *text)
{
    text->offered = text->offered_before;
}

/* ---- answers ---- */

/* One pair of the answer, NUL-terminated. What is wrong with it, or NULL. */
static const char *take_pair(struct ini_conn *c, struct ini_text *text)
{
    char *key = c->pair, *equals = strchr(key, '=');

    if (!equals || equals == key || equals - key > ISCSI_KEY_MAX)
        return "a text answer with something that is no key=value pair";
    if (!text_printable(key))
        return "a text answer with control characters";
    *equals = '\0';
    if (strcmp(key, "MaxRecvDataSegmentLength") == 0) {
        uint64_t n;
        if (text->declared || text_number(equals + 1, &n) || n < SEGMENT_MIN ||
            n > ISCSI_SEGMENT_MAX)
            return "a MaxRecvDataSegmentLength that is no number from 512 to 16777215, or two";
        text->declared = (uint32_t)n;
    }
    if (text->pair)
        text->pair(text, key, equals + 1);
    return NULL;
}

/* Pairs may be cut anywhere between answers (6.1). */
static const char *take_pairs(struct ini_conn *c, struct ini_text *text, const uint8_t *data,
                              uint32_t n)
{
    while (n) {
        const uint8_t *nul = memchr(data, 0, n);
        size_t part = nul ? (size_t)(nul - data) + 1 : n;
        if (part > sizeof c->pair - c->pair_length)
            return "a key=value pair of more than 1023 bytes";
        memcpy(c->pair + c->pair_length, data, part);
        c->pair_length += part;
        data += part;
        n -= (uint32_t)part;
        if (!nul)
            break;
        if (c->pair_length > 1) { /* not an empty pair, which says nothing */
            const char *flaw = take_pair(c, text);
            if (flaw)
                return flaw;
        }
        c->pair_length = 0;
    }
    return NULL;
}

static const char *answer_flaw(const struct iscsi_text_response *pdu)
{
    if (pdu->final && pdu->more)
        return "a text answer that is both final and to be continued";
    if (!pdu->final && pdu->ttt == ISCSI_TAG_NONE)
        return "a text answer that is not final but has no Target Transfer Tag";
    return NULL;
}

/* What was negotiated takes effect now, together (I-TXT-02). */
static void text_done(struct ini_conn *c, struct ini_text *text)
{
    if (text->declared)
        c->params.mrdsl_out = text->declared;
    if (text->mrdsl_in) {
        c->segmentation++;
        c->params.mrdsl_in = text->mrdsl_in;
        iscsi_rx_set_limit(&c->rx, text->mrdsl_in);
    }
    ini_op_end(&text->op, INI_OK);
    ini_start_text(c);
}

void ini_on_text_response(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    struct iscsi_text_response pdu;

    iscsi_text_response_unpack(bhs, &pdu);
    if (!ini_take_status(c, pdu.stat_sn))
        return;
    ini_take_window(c->session, pdu.exp_cmd_sn, pdu.max_cmd_sn);
    struct ini_op *op = ini_op_answered(c, pdu.itt, INI_KIND_TEXT, "Text Response");
    if (!op)
        return;
    struct ini_text *text = ini_text_of(op);
    bool asked_all = text->offered == text->request_length;
    const char *flaw = answer_flaw(&pdu);
    if (!flaw)
        flaw = take_pairs(c, text, data, n);
    if (!flaw && pdu.final && (c->pair_length || !asked_all))
        flaw = "a final text answer in the middle of a pair or of our request";
    if (!flaw && ++text->rounds > ROUNDS_MAX)
        flaw = "a text answer without end";
    if (flaw) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent %s", flaw);
        return;
    }
    if (pdu.final) { /* its tag means nothing then (11.10.4) */
        text_done(c, text);
        return;
    }
    text->ttt = pdu.ttt;
    text->lun = pdu.lun;
    text->more = pdu.more;
    op->state = INI_WAITING;
    ini_list_prepend(&c->queue, op);
    if (ini_queue_ready(c))
        ini_wake(c);
}
