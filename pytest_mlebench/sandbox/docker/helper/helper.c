/* The one foreign file in an agent's container: a static program that needs nothing of the image.
 *
 *   helper run FILES PORT=SOCKET... -- COMMAND [ARGUMENT...]
 *       allow as many open files, or as many as the engine does, and no core dumps; listen on 127.0.0.1:PORT (and ::1) before the command starts, pass every connection on to
 *       the unix socket SOCKET, run the command, hand a SIGTERM on to every process of the
 *       container, end with the command's exit code
 *   helper own UID GID PATH...
 *       give whole trees to a user, without following a link (once, when an image is prepared)
 *   helper stream SOCKET
 *       listen on the unix socket SOCKET, pass its connections on to stdin and stdout, one after
 *       the other; every piece of data is preceded by its length (4 bytes, the highest first), and
 *       the length 0 says that one side of the connection has ended (for engines elsewhere, to
 *       which no socket of ours can be bound)
 *
 * Without arguments it says what it can, and the sum of the source that it was built from.
 *
 * The container's init reaps; this program only starts, forwards and relays. It runs as the agent's
 * user: an agent may kill it, which ends the container, or talk to SOCKET itself, which is the same
 * as talking to PORT.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_PORTS = 8, MAX_PAIRS = 128, BUFFER = 16384, FAILED = 125 };

struct listener { int fd; const char *path; };
struct flow { int from, to; size_t start, end; int ended, closed; char data[BUFFER]; };
struct pair { int used; struct flow flows[2]; };

static struct listener listeners[2 * MAX_PORTS];
static int listener_count;
static struct pair pairs[MAX_PAIRS];

static void fail(const char *what) {
    fprintf(stderr, "mlebench: %s: %s\n", what, strerror(errno));
    exit(FAILED);
}

static int unix_address(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path) { errno = ENAMETOOLONG; return -1; }
    strcpy(address->sun_path, path);
    return 0;
}

static void listen_on(int family, int port, const char *path) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int on = 1, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v6.sin6_addr = in6addr_loopback;
    struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    socklen_t size = family == AF_INET ? sizeof v4 : sizeof v6;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, address, size) < 0 || listen(fd, 64) < 0) {
        if (family == AF_INET6) { if (fd >= 0) close(fd); return; }  /* no IPv6 here: not needed */
        fail("cannot listen on the validator's port");
    }
    listeners[listener_count++] = (struct listener){fd, path};
}

static void open_ports(int count, char **pairs_given) {
    if (count > MAX_PORTS) { errno = E2BIG; fail("too many ports"); }
    for (int i = 0; i < count; i++) {
        char *path = strchr(pairs_given[i], '=');
        if (!path) { errno = EINVAL; fail(pairs_given[i]); }
        *path++ = 0;
        listen_on(AF_INET, atoi(pairs_given[i]), path);
        listen_on(AF_INET6, atoi(pairs_given[i]), path);
    }
}

/* Return a connection to a unix socket, which may need a moment to come into being. */
static int connect_to(const char *path) {
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || unix_address(path, &address) < 0) return -1;
    for (int patience = 100; connect(fd, (struct sockaddr *)&address, sizeof address) < 0;) {
        if ((errno != ENOENT && errno != ECONNREFUSED) || !patience--) { close(fd); return -1; }
        usleep(50000);
    }
    return fd;
}

static void accept_one(struct listener *listener, struct pair *pair) {
    int client = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return;
    int server = connect_to(listener->path);
    if (server < 0) { close(client); return; }
    fcntl(server, F_SETFL, O_NONBLOCK);
    pair->used = 1;
    pair->flows[0] = (struct flow){.from = client, .to = server};
    pair->flows[1] = (struct flow){.from = server, .to = client};
}

static void fill(struct flow *flow) {
    ssize_t count = read(flow->from, flow->data, BUFFER);
    if (count > 0) { flow->start = 0; flow->end = count; return; }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    flow->ended = 1;
}

static void drain(struct flow *flow) {
    ssize_t count = write(flow->to, flow->data + flow->start, flow->end - flow->start);
    if (count > 0) flow->start += count;
    else if (errno != EAGAIN && errno != EINTR) { flow->ended = flow->closed = 1; flow->start = flow->end; }
}

static void step(struct flow *flow, short readable, short writable) {
    if (flow->start < flow->end) { if (writable) drain(flow); }
    else if (!flow->ended && readable) { fill(flow); if (flow->start < flow->end) drain(flow); }
    if (flow->ended && flow->start == flow->end && !flow->closed) {
        shutdown(flow->to, SHUT_WR);
        flow->closed = 1;
    }
}

static void relay(void) {
    static struct pollfd polls[2 * MAX_PORTS + 2 * MAX_PAIRS];
    for (;;) {
        struct pair *spare = NULL;
        nfds_t count = 0;
        for (int i = 0; i < MAX_PAIRS; i++) if (!pairs[i].used) spare = &pairs[i];
        for (int i = 0; i < MAX_PAIRS; i++)
            for (int side = 0; side < 2; side++, count++) {
                struct flow *in = &pairs[i].flows[side], *out = &pairs[i].flows[1 - side];
                short events = 0;
                if (pairs[i].used && !in->ended && in->start == in->end) events |= POLLIN;
                if (pairs[i].used && out->start < out->end) events |= POLLOUT;
                polls[count] = (struct pollfd){events ? in->from : -1, events, 0};
            }
        for (int i = 0; i < listener_count; i++, count++)
            polls[count] = (struct pollfd){spare ? listeners[i].fd : -1, POLLIN, 0};
        if (poll(polls, count, -1) < 0) continue;
        for (int i = 0; i < MAX_PAIRS; i++) {
            if (!pairs[i].used) continue;
            short here = polls[2 * i].revents, there = polls[2 * i + 1].revents;
            const short gone = POLLHUP | POLLERR;
            step(&pairs[i].flows[0], here & (POLLIN | gone), there & (POLLOUT | gone));
            step(&pairs[i].flows[1], there & (POLLIN | gone), here & (POLLOUT | gone));
            if (pairs[i].flows[0].closed && pairs[i].flows[1].closed) {
                close(pairs[i].flows[0].from);
                close(pairs[i].flows[1].from);
                pairs[i].used = 0;
            }
        }
        for (int i = 0; i < listener_count && spare; i++)
            if (polls[2 * MAX_PAIRS + i].revents) { accept_one(&listeners[i], spare); break; }
    }
}

static volatile sig_atomic_t ending;

static void on_term(int signal_number) {
    ending = 1;
    kill(-1, signal_number);
}

/* Set a limit on the agent and all its processes; engines may not raise one, but may lower it. */
static void limit(int what, rlim_t most) {
    struct rlimit value;
    if (getrlimit(what, &value) < 0) return;
    value.rlim_cur = value.rlim_max = value.rlim_max < most ? value.rlim_max : most;
    setrlimit(what, &value);
}

#ifdef __x86_64__
enum { ARCHITECTURE = AUDIT_ARCH_X86_64 };
#else
enum { ARCHITECTURE = AUDIT_ARCH_AARCH64 };
#endif

#define REFUSE(call, error) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), \
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

/* What profiles of older engines let pass and no agent needs: the way from a virtual machine to its
 * host, whatever network the container has (AF_VSOCK), io_uring, and keyrings, which belong to a
 * user and not to a container. Only where nothing can undo it, hence not for privileged agents. */
static void filter_calls(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),  /* __X32_SYSCALL_BIT */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        REFUSE(SYS_io_uring_setup, ENOSYS),
        REFUSE(SYS_io_uring_enter, ENOSYS),
        REFUSE(SYS_io_uring_register, ENOSYS),
        REFUSE(SYS_userfaultfd, EPERM),
        REFUSE(SYS_add_key, EPERM),
        REFUSE(SYS_request_key, EPERM),
        REFUSE(SYS_keyctl, EPERM),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        REFUSE(AF_VSOCK, EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof lines / sizeof *lines, lines };
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) < 0)
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);  /* runtimes such as gVisor may refuse */
}

static int run(int count, char **arguments) {
    int ports = 0;
    limit(RLIMIT_NOFILE, strtoul(arguments[0], NULL, 10));
    limit(RLIMIT_CORE, 0);
    count--, arguments++;
    while (ports < count && strcmp(arguments[ports], "--")) ports++;
    if (ports + 1 >= count) { errno = EINVAL; fail("no command given"); }
    char **command = arguments + ports + 1;
    dup2(1, 2);  /* one pipe, so that the log keeps the order in which things were said */
    open_ports(ports, arguments);
    pid_t relayer = ports ? fork() : -1;
    if (ports && relayer < 0) fail("cannot fork");
    if (relayer == 0) {
        signal(SIGPIPE, SIG_IGN);
        signal(SIGTERM, SIG_IGN);  /* an agent may check its submission in its last seconds */
        relay();
    }
    for (int i = 0; i < listener_count; i++) close(listeners[i].fd);
    pid_t agent = fork();
    if (agent < 0) fail("cannot fork");
    if (agent == 0) {
        filter_calls();
        execvp(command[0], command);
        fprintf(stderr, "mlebench: cannot start %s: %s\n", command[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGTERM, on_term);
    for (;;) {
        int status;
        pid_t ended = wait(&status);
        if (ended < 0 && errno != EINTR) return FAILED;
        if (ended != agent) continue;
        /* An agent that has ended takes everything with it; one that was asked to end has its
         * other processes waited for, as long as the engine allows. */
        if (ending && relayer > 0) kill(relayer, SIGKILL);
        while (ending && (wait(NULL) > 0 || errno == EINTR)) continue;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

static int read_all(int fd, char *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t count = read(fd, data + done, size - done);
        if (count == 0 || (count < 0 && errno != EINTR)) return 0;
        if (count > 0) done += count;
    }
    return 1;
}

static int write_all(int fd, const char *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t count = write(fd, data + done, size - done);
        if (count < 0 && errno != EINTR) return 0;
        if (count > 0) done += count;
    }
    return 1;
}

/* Pass one connection on; return 0 when the other side of stdin and stdout is gone. */
static int pass_on(int client) {
    static char data[BUFFER];
    int asking = 1, answering = 1;
    while (asking || answering) {
        struct pollfd polls[2] = {{asking ? client : -1, POLLIN, 0}, {0, POLLIN, 0}};
        if (poll(polls, 2, -1) < 0) continue;
        if (polls[0].revents) {
            ssize_t count = read(client, data, BUFFER);
            uint32_t size = htonl(count > 0 ? count : 0);
            asking = count > 0;
            if (!write_all(1, (char *)&size, 4) || !write_all(1, data, ntohl(size))) return 0;
        }
        if (polls[1].revents) {
            uint32_t size;
            if (!read_all(0, (char *)&size, 4) || ntohl(size) > BUFFER) return 0;
            if (!read_all(0, data, ntohl(size))) return 0;
            if (ntohl(size)) write_all(client, data, ntohl(size));
            else { answering = 0; shutdown(client, SHUT_WR); }
        }
    }
    return 1;
}

static int stream(const char *path) {
    struct sockaddr_un address;
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    if (listening < 0 || unix_address(path, &address) < 0) fail(path);
    signal(SIGPIPE, SIG_IGN);
    unlink(path);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) < 0) fail(path);
    if (listen(listening, 64) < 0) fail(path);
    for (;;) {
        int client = accept(listening, NULL, NULL);
        if (client < 0) continue;
        if (!pass_on(client)) return 0;
        close(client);
    }
}

static uid_t owner;
static gid_t group;

static int give(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)kind, (void)where;
    if (status->st_uid == owner && status->st_gid == group) return 0;  /* no copy into the layer */
    return lchown(path, owner, group);
}

static int own(int count, char **arguments) {
    owner = atoi(arguments[0]);
    group = atoi(arguments[1]);
    for (int i = 2; i < count; i++)
        if (nftw(arguments[i], give, 32, FTW_PHYS) != 0) fail(arguments[i]);
    return 0;
}

int main(int count, char **arguments) {
    if (count > 3 && !strcmp(arguments[1], "run")) return run(count - 2, arguments + 2);
    if (count == 3 && !strcmp(arguments[1], "stream")) return stream(arguments[2]);
    if (count > 4 && !strcmp(arguments[1], "own")) return own(count - 2, arguments + 2);
    fprintf(stderr, "usage: helper run FILES PORT=SOCKET... -- COMMAND... | own UID GID PATH... "
                    "| stream SOCKET\nsource: " SOURCE "\n");
    return FAILED;
}
