/* A stand-in that records nothing: two pipes, one poll(). copy COMMAND... */
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
    static char chunk[65536];
    int in[2], out[2], status;
    pid_t pid;
    posix_spawn_file_actions_t files;

    if (argc < 2 || pipe(in) || pipe(out))
        return 2;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    posix_spawn_file_actions_addclose(&files, in[1]);
    posix_spawn_file_actions_addclose(&files, out[0]);
    if (posix_spawnp(&pid, argv[1], &files, 0, argv + 1, environ))
        return 2;
    close(in[0]);
    close(out[1]);

    struct pollfd from[2] = {{0, POLLIN, 0}, {out[0], POLLIN, 0}};
    const int to[2] = {in[1], 1};
    while (from[1].fd >= 0 && poll(from, 2, -1) > 0)
        for (int side = 0; side < 2; side++) {
            if (!from[side].revents)
                continue;
            ssize_t got = read(from[side].fd, chunk, sizeof chunk);
            if (got <= 0) {
                close(to[side]);
                from[side].fd = -1;
            }
            for (ssize_t done = 0, put; done < got; done += put)
                if ((put = write(to[side], chunk + done, (size_t)(got - done))) < 0)
                    return 1;
        }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
