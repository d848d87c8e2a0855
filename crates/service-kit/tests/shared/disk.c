/* A disk with faults, for a program that is started with this library in LD_PRELOAD. It needs no special rights.
 * While the file $DISK_FULL exists, regular files do not grow (ENOSPC). $DISK_DELAY is how long each read, write
 * and flush of a regular file takes, in microseconds. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int is_file(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

static void wait_for_disk(void) {
    const char *delay = getenv("DISK_DELAY");
    struct timespec time = {0, delay ? atol(delay) * 1000 : 0};
    if (delay) nanosleep(&time, NULL);
}

/* What overwrites a part of a file takes no room. */
static int is_full(int fd, off64_t end) {
    const char *file = getenv("DISK_FULL");
    struct stat status;
    if (!file || access(file, F_OK) != 0 || fstat(fd, &status) != 0 || end <= status.st_size) return 0;
    errno = ENOSPC;
    return 1;
}

ssize_t read(int fd, void *buffer, size_t size) {
    if (is_file(fd)) wait_for_disk();
    return syscall(SYS_read, fd, buffer, size);
}

ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset) {
    if (is_file(fd)) wait_for_disk();
    return syscall(SYS_pread64, fd, buffer, size, offset);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset) { return pread64(fd, buffer, size, offset); }

ssize_t write(int fd, const void *buffer, size_t size) {
    if (is_file(fd)) {
        if (is_full(fd, lseek(fd, 0, SEEK_CUR) + (off64_t)size)) return -1;
        wait_for_disk();
    }
    return syscall(SYS_write, fd, buffer, size);
}

ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset) {
    if (is_file(fd)) {
        if (is_full(fd, offset + (off64_t)size)) return -1;
        wait_for_disk();
    }
    return syscall(SYS_pwrite64, fd, buffer, size, offset);
}

ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset) { return pwrite64(fd, buffer, size, offset); }

int fsync(int fd) {
    wait_for_disk();
    return syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    wait_for_disk();
    return syscall(SYS_fdatasync, fd);
}
