/* A host in C: drive REQUESTS ANSWERS WINDOW EARLY COMMAND... (see drive.py, which does the same)
 *
 * Sends the lines of the file REQUESTS to COMMAND, at most WINDOW of them unanswered, and takes one line for each.
 * ANSWERS is a file with what must come, byte for byte, or "-". Prints one line of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_SECONDS 300 /* then the system ends this process, and its child sees the end of its input */
#define die(what) (perror(what), exit(2))

extern char **environ;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double processor(const struct rusage *used)
{
    return (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
           (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1e6;
}

static char *mapped(const char *path, size_t *size)
{
    struct stat about;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &about))
        die(path);
    *size = (size_t)about.st_size;
    char *text = mmap(0, *size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (text == MAP_FAILED)
        die(path);
    close(fd);
    return text;
}

/* A line of /proc/PID/status in KiB; 0 where there is no such thing. */
static long memory(pid_t pid, const char *name)
{
    char path[64], line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, name, strlen(name)))
            kib = atol(line + strlen(name));
    if (status)
        fclose(status);
    return kib;
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv)
{
    static char chunk[65536];
    int in[2], out[2], status;
    pid_t pid;
    size_t size, expected_size = 0, received = 0;

    if (argc < 6)
        return 2;
    alarm(PATIENCE_SECONDS);
    signal(SIGPIPE, SIG_IGN);
    const char *requests = mapped(argv[1], &size);
    const char *expected = strcmp(argv[2], "-") ? mapped(argv[2], &expected_size) : 0;
    const long window = atol(argv[3]), early = atol(argv[4]);
    long count = 0, sent = 0, answered = 0, early_memory = 0;
    for (size_t i = 0; i < size; i++)
        count += requests[i] == '\n';
    double *asked = malloc((size_t)(count + 1) * sizeof *asked), *took = malloc((size_t)(count + 1) * sizeof *took);
    if (!asked || !took || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        die("drive");

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    if (posix_spawnp(&pid, argv[5], &files, 0, argv + 5, environ))
        die(argv[5]);
    close(in[0]);
    close(out[1]);

    const char *next = requests;
    double begin = 0;
    while (answered < count) {
        /* One at first: the start of the child is no part of the rate. */
        while (sent < count && sent - answered < (answered ? window : 1)) {
            const char *end = (const char *)memchr(next, '\n', size - (size_t)(next - requests)) + 1;
            asked[sent++] = now();
            /* Whether it has ended already is told by the end of its output. */
            if (write(in[1], next, (size_t)(end - next)) != end - next && errno != EPIPE)
                die("write");
            next = end;
        }
        ssize_t got = read(out[0], chunk, sizeof chunk);
        double at = now();
        if (got <= 0)
            return fprintf(stderr, "drive: the child ended after %ld of %ld answers\n", answered, count), 2;
        if (expected && (received + (size_t)got > expected_size || memcmp(expected + received, chunk, (size_t)got)))
            return fprintf(stderr, "drive: answer %ld is not the expected one\n", answered + 1), 2;
        received += (size_t)got;
        for (char *end = chunk; (end = memchr(end, '\n', (size_t)(chunk + got - end))); end++) {
            took[answered] = at - asked[answered];
            if (++answered == 1)
                begin = now();
            if (answered == early)
                early_memory = memory(pid, "VmRSS:");
        }
    }
    double end = now();
    long last_memory = memory(pid, "VmRSS:"), peak = memory(pid, "VmHWM:");
    close(in[1]);
    while (read(out[0], chunk, sizeof chunk) > 0)
        ;
    if (waitpid(pid, &status, 0) != pid)
        die("waitpid");
    double gone = now();
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);

    double *rest = count > 1 ? took + 1 : took;
    long many = count > 1 ? count - 1 : 1;
    qsort(rest, (size_t)many, sizeof *rest, ascending);
    printf("{\"seconds\": %.9f, \"to_exit\": %.9f, \"p50\": %.9f, \"p99\": %.9f, \"cpu\": %.6f, ", end - begin,
           gone - begin, rest[many / 2], rest[many * 99 / 100], processor(&used));
    printf("\"early_kib\": %ld, \"last_kib\": %ld, \"peak_kib\": %ld, ", early_memory, last_memory, peak);
    printf("\"exit\": %d}\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}
