/* SPDX-License-Identifier: BSD-2-Clause */
#include <lunpath/queue.h>

#include <errno.h>

static const uint64_t one_second_ns = 1000000000;

static void note_done(struct lp_request *req)
{
    *(bool *)req->user = true;
}

int lp_queue_run(struct lp_queue *q, struct lp_request *req)
{
    void (*complete)(struct lp_request *) = req->complete;
    void *user = req->user;
    bool done = false;

    req->complete = note_done;
    req->user = &done;
    while (lp_queue_submit(q, req) == -EAGAIN)
        lp_queue_poll(q, one_second_ns);
    while (!done)
        lp_queue_poll(q, one_second_ns);
    req->complete = complete;
    req->user = user;
    return req->status;
}

static int run_buffer(struct lp_queue *q, enum lp_op op, uint64_t offset, void *buf, size_t length)
{
    struct iovec iov = {.iov_base = buf, .iov_len = length};
    struct lp_request req = {
        .op = op, .offset = offset, .length = length, .iov = &iov, .iovcnt = 1};

    return lp_queue_run(q, &req);
}

int lp_queue_read(struct lp_queue *q, uint64_t offset, void *buf, size_t length)
{
    return run_buffer(q, LP_READ, offset, buf, length);
}

int lp_queue_write(struct lp_queue *q, uint64_t offset, const void *buf, size_t length)
{
    return run_buffer(q, LP_WRITE, offset, (void *)buf, length); /* a WRITE is only read from */
}
