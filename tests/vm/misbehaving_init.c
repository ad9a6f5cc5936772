/*
 * A first process that ends as its argument says, for the test of ci/vm's
 * verdicts. It mounts nothing but /dev and loads no module.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

static void tell(const char *device, const char *text)
{
	int fd = open(device, O_WRONLY | O_NOCTTY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		perror(device);
	/* The last close of a serial line waits until all of it is sent. */
	close(fd);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int argument;

	mkdir("/dev", 0755);
	if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) != 0)
		perror("/dev");
	for (argument = 1; argument < argc; argument++) {
		char line[256];

		snprintf(line, sizeof(line), "[%s]\n", argv[argument]);
		tell("/dev/ttyS1", line);
	}
	if (strcmp(how, "hang") == 0)
		for (;;)
			pause();
	if (strcmp(how, "crash") == 0)
		return 3; /* the kernel panics when its first process ends */
	if (strcmp(how, "crash after verdict") == 0) {
		tell("/dev/ttyS3", "0\n");
		return 0;
	}
	if (strcmp(how, "garbage") == 0)
		tell("/dev/ttyS3", "0\n1\n");
	if (strcmp(how, "silent") != 0 && strcmp(how, "garbage") != 0)
		tell("/dev/ttyS3", how);
	reboot(RB_POWER_OFF);
	return 0;
}
