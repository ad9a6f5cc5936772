/*
 * What the compute driver says to a process, its children and its threads,
 * asked by plain system calls. The library's rules for fork, vfork and clone
 * rest on these answers, and so do the simulated machine's; this program runs
 * on the real driver in a virtual machine (ci/vm --run) and fails where a
 * kernel answers otherwise.
 *
 * Prints a line for each rule; the exit status is the number of broken ones.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* linux/kfd_ioctl.h includes a header of libdrm, which need not be there. */
struct get_version {
	uint32_t major;
	uint32_t minor;
};
/* An int: that is what musl's ioctl takes, and the kernel looks at 32 bits. */
#define GET_VERSION ((int)_IOR('K', 0x01, struct get_version))
#define EVENT_PAGE_OFFSET ((off_t)0x8000000000000000ULL)
#define EVENT_PAGE_BYTES 32768

#define STACK_BYTES 65536
#define DESCRIPTOR_LIMIT 64
#define CYCLES 500

static int broken;
static int inherited;

static void rule(const char *name, int answer, int expected)
{
	if (answer == expected) {
		printf("ok - %s: %s\n", name, answer ? strerror(answer) : "success");
	} else {
		printf("not ok - %s: %d (%s), expected %d (%s)\n", name, answer,
		       strerror(answer), expected, strerror(expected));
		broken++;
	}
	fflush(stdout);
}

static int open_device(void)
{
	return open("/dev/kfd", O_RDWR | O_CLOEXEC);
}

static int version_errno(int fd)
{
	struct get_version version = { 0, 0 };

	return ioctl(fd, GET_VERSION, &version) == 0 ? 0 : errno;
}

/* The questions; each answers with an errno, or 0. */

static int version_on_inherited(void *unused)
{
	(void)unused;
	return version_errno(inherited);
}

static int open_answer(void *unused)
{
	(void)unused;
	return open_device() < 0 ? errno : 0;
}

static int version_on_own(void *unused)
{
	int fd = open_device();
	int answer = fd < 0 ? errno : version_errno(fd);

	(void)unused;
	close(fd);
	return answer;
}

static int event_page_on_inherited(void *unused)
{
	(void)unused;
	return mmap(NULL, EVENT_PAGE_BYTES, PROT_READ, MAP_SHARED, inherited,
		    EVENT_PAGE_OFFSET) == MAP_FAILED ? errno : 0;
}

static int version_after_own_open(void *unused)
{
	(void)unused;
	return open_device() < 0 ? errno : version_errno(inherited);
}

static int reaped(pid_t child)
{
	int status = 0;

	if (child < 0)
		return errno;
	while (waitpid(child, &status, __WALL) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int asked_in_fork(int (*question)(void *))
{
	pid_t child = fork();

	if (child == 0)
		_exit(question(NULL));
	return reaped(child);
}

/* clone(2) without any flag: a fork that the C library knows nothing about. */
static int asked_in_raw_clone(int (*question)(void *))
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (child == 0)
		_exit(question(NULL));
	return reaped(child);
}

static int asked_in_clone(int flags, int (*question)(void *))
{
	char *stack = malloc(STACK_BYTES);
	int answer;

	if (!stack)
		return ENOMEM;
	answer = reaped(clone(question, stack + STACK_BYTES, flags | SIGCHLD, NULL));
	free(stack);
	return answer;
}

/* As posix_spawn(3) has it: the parent waits until the child is done. */
static int asked_in_vfork(int (*question)(void *))
{
	return asked_in_clone(CLONE_VM | CLONE_VFORK, question);
}

/* A process that shares the memory and runs at the same time. */
static int asked_in_shared_memory(int (*question)(void *))
{
	return asked_in_clone(CLONE_VM, question);
}

static int asked_in_copied_memory(int (*question)(void *))
{
	return asked_in_clone(0, question);
}

static void become(const char *program, int fd)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	execl(program, program, number, (char *)NULL);
	_exit(254);
}

static int asked_after_fork_and_exec(const char *program, int fd)
{
	pid_t child = fork();

	if (child == 0)
		become(program, fd);
	return reaped(child);
}

/* The process that opened it goes on as another program. */
static int asked_after_exec(const char *program)
{
	pid_t child = fork();

	if (child == 0)
		become(program, open("/dev/kfd", O_RDWR));
	return reaped(child);
}

/* The open descriptors as a set of bits. */
static uint64_t descriptors(void)
{
	uint64_t set = 0;
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!folder)
		return 0;
	while ((entry = readdir(folder)) != NULL) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != dirfd(folder) && fd < 64)
			set |= UINT64_C(1) << fd;
	}
	closedir(folder);
	return set;
}

static int cycles(void)
{
	const struct rlimit limit = { DESCRIPTOR_LIMIT, DESCRIPTOR_LIMIT };
	uint64_t before = descriptors();
	int cycle, fd;

	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return errno;
	for (cycle = 0; cycle < CYCLES; cycle++) {
		fd = open_device();
		if (fd < 0)
			return errno;
		if (version_errno(fd) != 0)
			return version_errno(fd);
		if (close(fd) != 0)
			return errno;
	}
	return descriptors() == before ? 0 : EMFILE;
}

/* A chain of children, each a child of the one before, with its own open. */
static int chain(int length)
{
	int answer = version_on_own(NULL);
	pid_t child;

	if (answer != 0 || length == 0)
		return answer;
	child = fork();
	if (child == 0)
		_exit(chain(length - 1));
	return reaped(child);
}

int main(int argc, char **argv)
{
	struct get_version version = { 0, 0 };
	int kept;

	/* Run by become(): the answer on a descriptor that it was left. */
	if (argc > 1)
		return version_errno(atoi(argv[1]));

	inherited = open_device();
	if (inherited < 0 || ioctl(inherited, GET_VERSION, &version) != 0) {
		printf("not ok - /dev/kfd: %s\n", strerror(errno));
		return 1;
	}
	printf("# driver %u.%u\n", version.major, version.minor);

	rule("fork, inherited descriptor", asked_in_fork(version_on_inherited), EBADF);
	rule("fork, event page of the inherited descriptor",
	     asked_in_fork(event_page_on_inherited), EINVAL);
	rule("fork, own open", asked_in_fork(version_on_own), 0);
	rule("fork, inherited descriptor after own open",
	     asked_in_fork(version_after_own_open), EBADF);
	rule("raw clone, inherited descriptor",
	     asked_in_raw_clone(version_on_inherited), EBADF);
	rule("raw clone, own open", asked_in_raw_clone(version_on_own), 0);
	rule("clone without CLONE_VM, inherited descriptor",
	     asked_in_copied_memory(version_on_inherited), EBADF);
	rule("clone without CLONE_VM, own open", asked_in_copied_memory(version_on_own), 0);
	rule("vfork, inherited descriptor", asked_in_vfork(version_on_inherited), EBADF);
	rule("vfork, open", asked_in_vfork(open_answer), 0);
	rule("vfork, own open", asked_in_vfork(version_on_own), EBADF);
	rule("CLONE_VM, inherited descriptor",
	     asked_in_shared_memory(version_on_inherited), EBADF);
	rule("CLONE_VM, own open", asked_in_shared_memory(version_on_own), EBADF);
	rule("the parent after its children", version_errno(inherited), 0);

	rule("fork and exec, close-on-exec descriptor",
	     asked_after_fork_and_exec(argv[0], inherited), EBADF);
	kept = fcntl(inherited, F_DUPFD, 0);
	rule("fork and exec, kept descriptor", asked_after_fork_and_exec(argv[0], kept), EBADF);
	/* It still names the object of the memory that is gone. */
	rule("exec, descriptor of before", asked_after_exec(argv[0]), 0);
	close(kept);

	rule("50 forks in a chain, own open in each", chain(50), 0);
	close(inherited);
	rule("500 cycles of open and close, at most 64 descriptors", cycles(), 0);
	return broken;
}
