/* The child of the benchmarks: what comes in goes out. */
#include <unistd.h>

int main(void)
{
    static char chunk[65536];
    ssize_t got;

    while ((got = read(0, chunk, sizeof chunk)) > 0)
        for (ssize_t done = 0, put; done < got; done += put)
            if ((put = write(1, chunk + done, (size_t)(got - done))) < 0)
                return 1;
    return 0;
}
