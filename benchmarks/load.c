/* SPDX-License-Identifier: Apache-2.0 */
/* A closed-loop load client for a protocol of length-prefixed requests and answers (Kafka's).
 *
 *   load FILE PORT CONNECTIONS DEPTH SECONDS REQUESTS ERROR_AT
 *
 * FILE holds requests as they go over the wire, one behind the other. Request i belongs to connection
 * i % CONNECTIONS; each connection sends its requests round and round and keeps DEPTH of them unanswered. The
 * correlation id is written anew each time, and every answer must come back with the id that is due.
 * Sending ends after SECONDS, or after REQUESTS requests (0: no limit), of which each connection has its share, so that
 * as many as the file holds are each of the file once. What is unanswered then is waited for: the answers counted are
 * exactly those that the server worked for.
 * ERROR_AT is the place of an int16 error code in an answer, counted from its size field; -1: do not look.
 *
 * It says "ready" when all connections stand and answer, begins at a line on stdin, tells what happened as one JSON
 * object on stdout, and keeps the connections until stdin ends: between "ready" and the object lies nothing but the
 * load, and the server's processor time can be read at both. The exit code is 1 when a connection fails, closes, stalls or answers
 * out of turn: such a run measures nothing.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ApiVersions v0: the one request that every server answers */
static const unsigned char HELLO[] = {0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

enum { DEEPEST = 64, STALL_MS = 30000, CORRELATION = 8, LATENCIES = 1 << 20, EVENTS = 512 };

struct request {
    unsigned char *bytes;
    int size;
};

struct connection {
    int fd;
    struct request *requests;
    int count, next;
    unsigned char *in;
    int held, room;
    long left; /* how many requests it may still send */
    int32_t due[DEEPEST]; /* a ring: correlation ids and times of what is unanswered, oldest first */
    int64_t sent_at[DEEPEST];
    unsigned first, last;
};

static struct {
    long answers, errors, bytes;
    int code, least, most;
} tally = {.least = 1 << 30};

static long unanswered;
static int depth, error_at, stopping;
static int32_t correlation = 1;
static unsigned char *out;
static uint32_t *latency; /* answers by microseconds; the last place holds all that took longer */

static void fail(const char *what) {
    fprintf(stderr, "load: %s (%s) after %ld answers, %ld unanswered\n", what, errno ? strerror(errno) : "-",
            tally.answers, unanswered);
    exit(1);
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int32_t int32_at(const unsigned char *p) {
    return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

static void put_int32(unsigned char *p, int32_t value) {
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)((uint32_t)value >> (24 - 8 * i));
}

static void write_all(int fd, const unsigned char *p, size_t size) {
    while (size) {
        ssize_t n = write(fd, p, size);
        if (n < 0) {
            if (errno != EAGAIN) fail("write");
            struct pollfd writable = {.fd = fd, .events = POLLOUT};
            if (poll(&writable, 1, STALL_MS) <= 0) fail("the server does not read");
            continue;
        }
        p += n;
        size -= (size_t)n;
    }
}

/* Put the connection's next request at `place` of the output; returns the place behind it. */
static int add_request(struct connection *c, int place, int64_t at) {
    struct request *r = c->requests + c->next;
    c->next = (c->next + 1) % c->count;
    put_int32(r->bytes + CORRELATION, correlation);
    memcpy(out + place, r->bytes, (size_t)r->size);
    c->due[c->last % DEEPEST] = correlation++;
    c->sent_at[c->last++ % DEEPEST] = at;
    unanswered++;
    c->left--;
    return place + r->size;
}

static int may_send(const struct connection *c) { return !stopping && c->left > 0; }

static void count_answer(struct connection *c, const unsigned char *answer, int size, int64_t at) {
    if (c->first == c->last || int32_at(answer + 4) != c->due[c->first % DEEPEST]) fail("an answer out of turn");
    int64_t us = (at - c->sent_at[c->first++ % DEEPEST]) / 1000;
    latency[us < LATENCIES ? us : LATENCIES - 1]++;
    unanswered--;
    tally.answers++;
    tally.bytes += size;
    if (size < tally.least) tally.least = size;
    if (size > tally.most) tally.most = size;
    if (error_at >= 0 && error_at + 2 <= size) {
        int code = (int16_t)(answer[error_at] << 8 | answer[error_at + 1]);
        if (code) tally.errors++, tally.code = code;
    }
}

static void receive(struct connection *c, int64_t at) {
    ssize_t n = read(c->fd, c->in + c->held, (size_t)(c->room - c->held));
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) fail("a connection was closed");
    c->held += (int)n;
    int place = 0, filled = 0, size = 0;
    while (c->held - place >= 8 && c->held - place >= (size = 4 + int32_at(c->in + place))) {
        count_answer(c, c->in + place, size, at);
        place += size;
        if (may_send(c)) filled = add_request(c, filled, at);
    }
    c->held -= place;
    memmove(c->in, c->in + place, (size_t)c->held);
    while (c->room < size || c->room == c->held) c->in = realloc(c->in, (size_t)(c->room *= 2));
    if (filled) write_all(c->fd, out, (size_t)filled);
}

static void read_all(int fd, unsigned char *p, int size) {
    for (ssize_t n; size; p += n, size -= (int)n)
        if ((n = read(fd, p, (size_t)size)) <= 0) fail("no answer to a first request");
}

/* Connections are opened one by one, each waiting for an answer: a server's queue of unaccepted ones is short, and
 * those that do not fit are only tried again after a second. */
static void open_connection(struct connection *c, int port, int epoll) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int yes = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    c->in = malloc((size_t)(c->room = 16384));
    write_all(c->fd, HELLO, sizeof HELLO);
    read_all(c->fd, c->in, 4);
    int size = int32_at(c->in);
    if (size < 6 || size > c->room) fail("an odd answer to a first request");
    read_all(c->fd, c->in, size);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll_ctl");
}

/* Deal the requests of the file out to the connections; returns the size of the largest. */
static int deal(const char *path, struct connection *connections, int n) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc((size_t)size + 1);
    if (fread(bytes, 1, (size_t)size, file) != (size_t)size) fail(path);
    fclose(file);
    int largest = 0;
    long i = 0;
    for (long place = 0; place < size; i++) {
        struct connection *c = connections + i % n;
        struct request r = {bytes + place, 4 + int32_at(bytes + place)};
        if (!(c->count & (c->count - 1)))
            c->requests = realloc(c->requests, sizeof r * (size_t)(c->count ? 2 * c->count : 1));
        c->requests[c->count++] = r;
        if (r.size > largest) largest = r.size;
        place += r.size;
    }
    if (i < n) fail("fewer requests than connections");
    return largest;
}

static long percentile(double part) {
    double wanted = part * (double)tally.answers, seen = 0;
    for (long us = 0; us < LATENCIES; us++)
        if ((seen += latency[us]) >= wanted) return us;
    return LATENCIES;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: load FILE PORT CONNECTIONS DEPTH SECONDS REQUESTS ERROR_AT\n");
        return 2;
    }
    int port = atoi(argv[2]), n = atoi(argv[3]);
    double seconds = atof(argv[5]);
    depth = atoi(argv[4]);
    long limit = atol(argv[6]);
    error_at = atoi(argv[7]);
    if (n < 1 || depth < 1 || depth > DEEPEST) fail("CONNECTIONS from 1, DEPTH from 1 to 64");
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);

    struct connection *connections = calloc((size_t)n, sizeof *connections);
    latency = calloc(LATENCIES, sizeof *latency);
    /* one read may bring all DEPTH answers, and each makes room for one more request */
    out = malloc((size_t)deal(argv[1], connections, n) * (size_t)depth);
    int epoll = epoll_create1(0);
    for (int i = 0; i < n; i++) {
        connections[i].left = limit ? limit / n + (i < limit % n) : 1L << 60;
        open_connection(connections + i, port, epoll);
    }

    printf("ready\n");
    fflush(stdout);
    if (getchar() == EOF) return 0;
    int64_t start = now(), end = start + (int64_t)(seconds * 1e9), at = start;
    for (int i = 0; i < n; i++) {
        int filled = 0;
        for (int k = 0; k < depth && may_send(connections + i); k++) filled = add_request(connections + i, filled, now());
        write_all(connections[i].fd, out, (size_t)filled);
    }
    struct epoll_event events[EVENTS];
    while (unanswered) {
        int ready = epoll_wait(epoll, events, EVENTS, STALL_MS);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        if (ready == 0) fail("no answer for 30 seconds");
        at = now();
        stopping = stopping || at >= end;
        for (int i = 0; i < ready; i++) receive(events[i].data.ptr, at);
    }

    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("{\"answers\": %ld, \"seconds\": %.4f, \"cpu_seconds\": %.4f, \"errors\": %ld, \"error_code\": %d, "
           "\"least_bytes\": %d, \"most_bytes\": %d, \"total_bytes\": %ld, \"p50_us\": %ld, \"p95_us\": %ld, \"p99_us\": %ld}\n",
           tally.answers, (double)(at - start) / 1e9, cpu, tally.errors, tally.code, tally.answers ? tally.least : 0,
           tally.most, tally.bytes, percentile(0.5), percentile(0.95), percentile(0.99));
    fflush(stdout);
    while (getchar() != EOF) continue;
    return 0;
}
