/* SPDX-License-Identifier: BSD-2-Clause */
/* What can be said about a disk before it is used, and what only one kind of disk does. */
#ifndef LP_PORTABLE
#define _GNU_SOURCE /* for leases */
#endif
#include "disk_helpers.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void every_bad_url_gets_a_sentence(void **state)
{
    (void)state;
    refused("", NULL, "there is no disk", "ram:SIZE");
    refused("foo:1G", NULL, "there is no disk", "file:PATH");
    refused("/dev/null", NULL, "there is no disk", "file:PATH");
    refused("ram", NULL, "there is no disk", "ram:SIZE");
    refused("RAM:1G", NULL, "there is no disk", "ram:SIZE");
    refused("ram:", NULL, "size is missing", "such as 1G");
    refused("null:", NULL, "size is missing", "such as 1G");
    refused("ram:big", NULL, "\"big\" is not a size", "write a whole number");
    refused("ram:-1", NULL, "\"-1\" is not a size", "write a whole number");
    refused("null:0", NULL, "the size is 0", "one block");
    refused("ram:0", NULL, "the size is 0", "one block");
    refused("null:513", NULL, "513 is not a multiple", "512 bytes");
    refused("ram:1KB", NULL, "1KB is not a multiple", "512 bytes");
    refused("null:8388608T", NULL, "too large", "below 8 EiB");
    refused("null:99999999T", NULL, "too large", "below 16 EiB");
    refused("file:", NULL, "the path is missing", "file:/dev/");
}

static void memory_that_is_not_there_is_refused(void **state)
{
    (void)state;
    refused("ram:4000000T", NULL, "memory", "");
#ifndef LP_PORTABLE
    refused("ram:1000T", NULL, "1099511627776000 bytes", "are available");
#endif
}

static void the_table_lists_every_disk_with_help(void **state)
{
    static const char *const expected[] = {"null", "ram", "file", "iscsi", "fault"};
    const struct lp_disk_type *const *types = lp_disk_types();

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_non_null(types[i]);
        assert_string_equal(types[i]->name, expected[i]);
        assert_non_null(strstr(types[i]->help, expected[i]));
    }
    assert_null(types[sizeof expected / sizeof *expected]);
}

static void null_reads_give_zeros_only_if_asked(void **state)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    char buf[1024], untouched[1024];

    (void)state;
    memset(untouched, 0x77, sizeof untouched);
    for (unsigned asked = 0; asked < 2; asked++) {
        opts.zero_reads = asked;
        struct lp_disk *disk = must_open("null:1T", &opts);
        struct lp_queue *q = must_queue(disk, 1);
        memcpy(buf, untouched, sizeof buf);
        assert_int_equal(lp_queue_read(q, (uint64_t)1 << 39, buf, 512), 0);
        if (asked)
            for (unsigned i = 0; i < 512; i++)
                assert_int_equal(buf[i], 0);
        else
            assert_memory_equal(buf, untouched, 512);
        assert_memory_equal(buf + 512, untouched, 512);
        lp_queue_close(q);
        lp_disk_close(disk);
    }
}

static void a_size_larger_than_memory_is_fine_for_null(void **state)
{
    struct lp_disk *disk = must_open("null:8388607T", NULL);

    (void)state;
    assert_int_equal(lp_disk_limits(disk)->size, (uint64_t)8388607 << 40);
    assert_int_equal(lp_disk_share(disk), -1);
    lp_disk_close(disk);
}

static void ram_begins_with_zeros_and_says_its_page_size(void **state)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    char *buf = aligned_memory(3 << 20), *zeros = aligned_memory(3 << 20);

    (void)state;
    for (unsigned small = 0; small < 2; small++) {
        opts.small_pages = small;
        struct lp_disk *disk = must_open("ram:3M", &opts);
        struct lp_queue *q = must_queue(disk, 1);
        memset(buf, 1, 3 << 20);
        assert_int_equal(lp_queue_read(q, 0, buf, 3 << 20), 0);
        assert_memory_equal(buf, zeros, 3 << 20);
        assert_non_null(strstr(lp_disk_mode(disk), "iB pages"));
        if (small)
            assert_null(strstr(lp_disk_mode(disk), "MiB"));
        lp_queue_close(q);
        lp_disk_close(disk);
    }
    free(buf);
    free(zeros);
}

static void is_closed(int fd)
{
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
}

static int temporary_file(char *path, off_t size)
{
    strcpy(path, "/tmp/lunpath-open-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    return fd;
}

static void a_given_descriptor_is_checked_and_taken_over(void **state)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    char path[64], url[80];

    (void)state;
    opts.buffered = true;
    opts.fd = temporary_file(path, 1 << 20);
    refused("ram:1M", &opts, "", ""); /* a file is not sealed memory */
    is_closed(opts.fd);
    opts.fd = open(path, O_RDWR);
    refused("ram:7", &opts, "multiple", "");
    is_closed(opts.fd);
    opts.fd = open(path, O_RDWR);
    refused("fault:never:ram:1M", &opts, "there is no fault", "");
    is_closed(opts.fd);
    opts.fd = open(path, O_RDWR);
    refused("nothing:7", &opts, "there is no disk", "");
    is_closed(opts.fd);
    snprintf(url, sizeof url, "file:%s", path);
    opts.fd = open(path, O_RDONLY);
    refused(url, &opts, "for reading only", "");
    is_closed(opts.fd);
    opts.fd = open(path, O_RDWR);
    lp_disk_close(must_open(url, &opts));
    is_closed(opts.fd);
    opts.fd = open(path, O_RDWR);
    lp_disk_close(must_open("null:1M", &opts));
    is_closed(opts.fd);
    unlink(path);
}

static void shared_memory_smaller_than_it_claims_is_refused(void **state)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    struct lp_disk *disk = must_open("ram:1M", NULL);

    (void)state;
    if (lp_disk_share(disk) < 0) {
        lp_disk_close(disk);
        skip();
    }
    opts.fd = dup(lp_disk_share(disk));
    refused("ram:2M", &opts, "smaller", "2097152");
    is_closed(opts.fd);
    lp_disk_close(disk);
}

static void shared_memory_cannot_be_shrunk(void **state)
{
    struct lp_disk *disk = must_open("ram:1M", NULL);

    (void)state;
    if (lp_disk_share(disk) < 0) {
        lp_disk_close(disk);
        skip();
    }
    assert_int_equal(ftruncate(lp_disk_share(disk), 4096), -1);
    lp_disk_close(disk);
}

static void what_is_no_file_or_device_is_refused(void **state)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    char folder[] = "/tmp/lunpath-open-XXXXXX", url[96], path[80];

    (void)state;
    opts.buffered = true;
    assert_non_null(mkdtemp(folder));
    snprintf(url, sizeof url, "file:%s", folder);
    refused(url, &opts, "is a directory", "name a regular file");
    refused("file:/dev/null", &opts, "neither a file nor a disk", "");
    snprintf(path, sizeof path, "%s/fifo", folder);
    snprintf(url, sizeof url, "file:%s", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(url, &opts, "neither a file nor a disk", ""); /* and does not wait for a writer */
    unlink(path);
    refused(url, &opts, "does not exist", "truncate -s 1G");
    assert_int_equal(access(path, F_OK), -1); /* it is not created either */
    rmdir(folder);
}

static void a_file_must_have_one_block(void **state)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    char path[64], url[80];

    (void)state;
    opts.buffered = true;
    close(temporary_file(path, 0));
    snprintf(url, sizeof url, "file:%s", path);
    refused(url, &opts, "holds 0 bytes", "make it larger");
    assert_int_equal(truncate(path, 511), 0);
    refused(url, &opts, "holds 511 bytes", "make it larger");
    unlink(path);
}

static void the_odd_end_of_a_file_is_not_part_of_the_disk(void **state)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    char path[64], url[80];

    (void)state;
    opts.buffered = true;
    close(temporary_file(path, 10 * 512 + 100));
    snprintf(url, sizeof url, "file:%s", path);
    struct lp_disk *disk = must_open(url, &opts);
    struct lp_queue *q = must_queue(disk, 1);
    char buf[512] = {1};
    assert_int_equal(lp_disk_limits(disk)->size, 10 * 512);
    assert_int_equal(lp_queue_write(q, 9 * 512, buf, 512), 0);
    assert_int_equal(lp_queue_write(q, 10 * 512, buf, 512), -EINVAL);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 10 * 512 + 100);
    lp_queue_close(q);
    lp_disk_close(disk);
    unlink(path);
}

/* A lease is only given on a file that nobody has open. */
static bool nobody_has_it_open(const char *path)
{
#ifdef F_SETLEASE
    int fd = open(path, O_RDONLY);
    int r = fcntl(fd, F_SETLEASE, F_WRLCK);
    close(fd);
    return r == 0;
#else
    return access(path, R_OK) != 0; /* false: cannot be told here */
#endif
}

static void check_read(struct lp_queue *q, bool uring, const char *path)
{
    char *buf = aligned_memory(4096);

    (void)uring;
    assert_int_equal(lp_queue_read(q, 0, buf, 4096), 0);
    assert_false(nobody_has_it_open(path));
    free(buf);
}

/* Opens the file as every engine can and calls back. */
static void with_each_engine(const char *url,
                             void (*check)(struct lp_queue *, bool uring, const char *path),
                             const char *path)
{
    for (unsigned i = 0; i < 4; i++) {
        struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
        struct lp_error err = {0};
        opts.engine = i & 1 ? LP_ENGINE_THREADS : LP_ENGINE_URING;
        opts.buffered = i & 2;
        struct lp_disk *disk = lp_disk_open(url, &opts, &err);
        if (!disk) {
            if (strstr(err.msg, "io_uring") || strstr(err.msg, "--buffered"))
                continue;
            fail_msg("%s", err.msg);
        }
        const char *mode = lp_disk_mode(disk);
        assert_non_null(strstr(mode, opts.buffered ? "buffered" : "O_DIRECT"));
        assert_non_null(strstr(mode, i & 1 ? "threads" : "io_uring"));
        struct lp_queue *q = must_queue(disk, 8);
        check(q, !(i & 1), path);
        lp_queue_close(q);
        lp_disk_close(disk);
        if (check == check_read)
            assert_true(nobody_has_it_open(path));
    }
}

static void check_shrunk(struct lp_queue *q, bool uring, const char *path)
{
    char *buf = aligned_memory(1 << 20);

    (void)uring;
    assert_int_equal(truncate(path, 512 << 10), 0);
    memset(buf, 9, 1 << 20);
    assert_int_equal(lp_queue_read(q, 0, buf, 1 << 20), -EIO);
    assert_int_equal(lp_queue_read(q, 768 << 10, buf, 4096), -EIO);
    assert_int_equal(lp_queue_read(q, 0, buf, 512 << 10), 0);
    assert_int_equal(truncate(path, 1 << 20), 0);
    assert_int_equal(lp_queue_read(q, 0, buf, 1 << 20), 0);
    free(buf);
}

static void reading_a_file_that_has_shrunk_is_an_error(void **state)
{
    char path[64], url[80];

    (void)state;
    close(temporary_file(path, 1 << 20));
    snprintf(url, sizeof url, "file:%s", path);
    with_each_engine(url, check_shrunk, path);
    unlink(path);
}

static void never(struct lp_request *req)
{
    (void)req;
    fail();
}

static void note(struct lp_request *req)
{
    assert_int_equal(req->status, 0);
    ++*(unsigned *)req->user;
}

/* uring: one system call sends all eight. */
static void check_batch(struct lp_queue *q, bool uring, const char *path)
{
    struct lp_request reqs[8];
    struct iovec iov[8];
    unsigned ended = 0;
    char *buf = aligned_memory(8 * 4096);

    (void)path;
    for (unsigned i = 0; i < 8; i++) {
        iov[i] = (struct iovec){.iov_base = buf + i * 4096, .iov_len = 4096};
        reqs[i] = (struct lp_request){.op = LP_READ,
                                      .offset = i * 4096,
                                      .length = 4096,
                                      .iov = &iov[i],
                                      .iovcnt = 1,
                                      .complete = never,
                                      .user = &ended};
        assert_int_equal(lp_queue_submit(q, &reqs[i]), 0);
    }
    assert_int_equal(q->stats.syscalls, 0); /* submit() only collects */
    lp_queue_kick(q);
    if (uring)
        assert_int_equal(q->stats.syscalls, 1);
    else
        assert_true(q->stats.syscalls <= 8); /* a wake each at most */
    assert_int_equal(ended, 0);
    for (unsigned i = 0; i < 8; i++)
        reqs[i].complete = note;
    while (ended < 8)
        assert_true(lp_queue_poll(q, ten_seconds) > 0);
    assert_true(q->stats.syscalls > 0);
    assert_int_equal(q->stats.requests, 8);
    assert_int_equal(q->stats.bytes_read, 8 * 4096);
    free(buf);
}

static void requests_are_sent_together_by_kick(void **state)
{
    char path[64], url[80];

    (void)state;
    close(temporary_file(path, 1 << 20));
    snprintf(url, sizeof url, "file:%s", path);
    with_each_engine(url, check_batch, path);
    unlink(path);
}

/* Or a device that was just left could not be mounted. */
static void a_closed_disk_holds_its_file_no_longer(void **state)
{
    char path[64], url[80];

    (void)state;
    close(temporary_file(path, 1 << 20));
    if (!nobody_has_it_open(path)) {
        unlink(path);
        skip(); /* no leases on this system */
    }
    snprintf(url, sizeof url, "file:%s", path);
    with_each_engine(url, check_read, path);
    unlink(path);
}

static void direct_io_that_a_file_system_refuses_is_explained(void **state)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;

    (void)state;
    opts.read_only = true;
    if (access("/proc/version", R_OK) != 0)
        skip(); /* needs a file system without direct I/O */
    refused("file:/proc/version", &opts, "direct I/O", "--buffered");
}

static void a_file_that_may_not_be_written_can_be_read(void **state)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    const char *url = "file:/proc/self/exe"; /* even root may not write to a running program */

    (void)state;
    if (access("/proc/self/exe", R_OK) != 0)
        skip();
    opts.buffered = true;
    refused(url, &opts, "cannot open", "for reading and writing");
    opts.read_only = true;
    lp_disk_close(must_open(url, &opts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bad_url_gets_a_sentence),
        cmocka_unit_test(memory_that_is_not_there_is_refused),
        cmocka_unit_test(the_table_lists_every_disk_with_help),
        cmocka_unit_test(null_reads_give_zeros_only_if_asked),
        cmocka_unit_test(a_size_larger_than_memory_is_fine_for_null),
        cmocka_unit_test(ram_begins_with_zeros_and_says_its_page_size),
        cmocka_unit_test(a_given_descriptor_is_checked_and_taken_over),
        cmocka_unit_test(shared_memory_smaller_than_it_claims_is_refused),
        cmocka_unit_test(shared_memory_cannot_be_shrunk),
        cmocka_unit_test(what_is_no_file_or_device_is_refused),
        cmocka_unit_test(a_file_must_have_one_block),
        cmocka_unit_test(the_odd_end_of_a_file_is_not_part_of_the_disk),
        cmocka_unit_test(reading_a_file_that_has_shrunk_is_an_error),
        cmocka_unit_test(requests_are_sent_together_by_kick),
        cmocka_unit_test(a_closed_disk_holds_its_file_no_longer),
        cmocka_unit_test(direct_io_that_a_file_system_refuses_is_explained),
        cmocka_unit_test(a_file_that_may_not_be_written_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
