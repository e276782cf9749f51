"""What Linux calls the arguments of system calls: the fields of syscalls:sys_enter_*. From its SYSCALL_DEFINEs."""

from __future__ import annotations

_LINES = """
accept: fd upeer_sockaddr upeer_addrlen
accept4: fd upeer_sockaddr upeer_addrlen flags
access: filename mode
alarm: seconds
arch_prctl: option arg2
bind: fd umyaddr addrlen
brk: brk
capget: header dataptr
capset: header data
chdir: filename
chmod: filename mode
chown: filename user group
clock_getres: which_clock tp
clock_gettime: which_clock tp
clock_nanosleep: which_clock flags rqtp rmtp
clock_settime: which_clock tp
clone3: uargs size
close: fd
close_range: fd max_fd flags
connect: fd uservaddr addrlen
copy_file_range: fd_in off_in fd_out off_out len flags
creat: pathname mode
dup: fildes
dup2: oldfd newfd
dup3: oldfd newfd flags
epoll_create: size
epoll_create1: flags
epoll_ctl: epfd op fd event
epoll_pwait: epfd events maxevents timeout sigmask sigsetsize
epoll_pwait2: epfd events maxevents timeout sigmask sigsetsize
epoll_wait: epfd events maxevents timeout
eventfd: count
eventfd2: count flags
execve: filename argv envp
execveat: fd filename argv envp flags
exit: error_code
exit_group: error_code
faccessat: dfd filename mode
faccessat2: dfd filename mode flags
fadvise64: fd offset len advice
fallocate: fd mode offset len
fchdir: fd
fchmod: fd mode
fchmodat: dfd filename mode
fchmodat2: dfd filename mode flags
fchown: fd user group
fchownat: dfd filename user group flag
fcntl: fd cmd arg
fdatasync: fd
fgetxattr: fd name value size
flistxattr: fd list size
flock: fd cmd
fork:
fremovexattr: fd name
fsetxattr: fd name value size flags
fstat: fd statbuf
fstatfs: fd buf
fsync: fd
ftruncate: fd length
futex: uaddr op val utime uaddr2 val3
futex_waitv: waiters nr_futexes flags timeout clockid
futimesat: dfd filename utimes
get_mempolicy: policy nmask maxnode addr flags
get_robust_list: pid head_ptr len_ptr
getcpu: cpup nodep unused
getcwd: buf size
getdents: fd dirent count
getdents64: fd dirent count
getegid:
geteuid:
getgid:
getgroups: gidsetsize grouplist
getitimer: which value
getpeername: fd usockaddr usockaddr_len
getpgid: pid
getpgrp:
getpid:
getppid:
getpriority: which who
getrandom: ubuf len flags
getresgid: rgidp egidp sgidp
getresuid: ruidp euidp suidp
getrlimit: resource rlim
getrusage: who ru
getsid: pid
getsockname: fd usockaddr usockaddr_len
getsockopt: fd level optname optval optlen
gettid:
gettimeofday: tv tz
getuid:
getxattr: pathname name value size
inotify_add_watch: fd pathname mask
inotify_init:
inotify_init1: flags
inotify_rm_watch: fd wd
ioctl: fd cmd arg
kcmp: pid1 pid2 type idx1 idx2
kill: pid sig
lchown: filename user group
lgetxattr: pathname name value size
link: oldname newname
linkat: olddfd oldname newdfd newname flags
listen: fd backlog
listxattr: pathname list size
llistxattr: pathname list size
lremovexattr: pathname name
lseek: fd offset whence
lsetxattr: pathname name value size flags
lstat: filename statbuf
madvise: start len_in behavior
mbind: start len mode nmask maxnode flags
membarrier: cmd flags cpu_id
memfd_create: uname flags
mincore: start len vec
mkdir: pathname mode
mkdirat: dfd pathname mode
mknod: filename mode dev
mknodat: dfd filename mode dev
mlock: start len
mlock2: start len flags
mlockall: flags
mmap: addr len prot flags fd off
mprotect: start len prot
mremap: addr old_len new_len flags new_addr
msgctl: msqid cmd buf
msgget: key msgflg
msgrcv: msqid msgp msgsz msgtyp msgflg
msgsnd: msqid msgp msgsz msgflg
msync: start len flags
munlock: start len
munlockall:
munmap: addr len
nanosleep: rqtp rmtp
newfstatat: dfd filename statbuf flag
open: filename flags mode
openat: dfd filename flags mode
openat2: dfd filename how usize
pause:
personality: personality
pidfd_getfd: pidfd fd flags
pidfd_open: pid flags
pidfd_send_signal: pidfd sig info flags
pipe: fildes
pipe2: fildes flags
poll: ufds nfds timeout_msecs
ppoll: ufds nfds tsp sigmask sigsetsize
prctl: option arg2 arg3 arg4 arg5
pread64: fd buf count pos
preadv: fd vec vlen pos_l pos_h
preadv2: fd vec vlen pos_l pos_h flags
prlimit64: pid resource new_rlim old_rlim
process_vm_readv: pid lvec liovcnt rvec riovcnt flags
process_vm_writev: pid lvec liovcnt rvec riovcnt flags
pselect6: n inp outp exp tsp sig
pwrite64: fd buf count pos
pwritev: fd vec vlen pos_l pos_h
pwritev2: fd vec vlen pos_l pos_h flags
read: fd buf count
readahead: fd offset count
readlink: path buf bufsiz
readlinkat: dfd pathname buf bufsiz
readv: fd vec vlen
recvfrom: fd ubuf size flags addr addr_len
recvmmsg: fd mmsg vlen flags timeout
recvmsg: fd msg flags
removexattr: pathname name
rename: oldname newname
renameat: olddfd oldname newdfd newname
renameat2: olddfd oldname newdfd newname flags
rmdir: pathname
rseq: rseq rseq_len flags sig
rt_sigaction: sig act oact sigsetsize
rt_sigpending: uset sigsetsize
rt_sigprocmask: how nset oset sigsetsize
rt_sigqueueinfo: pid sig uinfo
rt_sigreturn:
rt_sigsuspend: unewset sigsetsize
rt_sigtimedwait: uthese uinfo uts sigsetsize
rt_tgsigqueueinfo: tgid pid sig uinfo
sched_get_priority_max: policy
sched_get_priority_min: policy
sched_getaffinity: pid len user_mask_ptr
sched_getattr: pid uattr usize flags
sched_getparam: pid param
sched_getscheduler: pid
sched_rr_get_interval: pid interval
sched_setaffinity: pid len user_mask_ptr
sched_setattr: pid uattr flags
sched_setparam: pid param
sched_setscheduler: pid policy param
sched_yield:
select: n inp outp exp tvp
semctl: semid semnum cmd arg
semget: key nsems semflg
semop: semid tsops nsops
semtimedop: semid tsops nsops timeout
sendfile: out_fd in_fd offset count
sendmmsg: fd mmsg vlen flags
sendmsg: fd msg flags
sendto: fd buff len flags addr addr_len
set_mempolicy: mode nmask maxnode
set_robust_list: head len
set_tid_address: tidptr
setfsgid: gid
setfsuid: uid
setgid: gid
setgroups: gidsetsize grouplist
setitimer: which value ovalue
setpgid: pid pgid
setpriority: which who niceval
setregid: rgid egid
setresgid: rgid egid sgid
setresuid: ruid euid suid
setreuid: ruid euid
setrlimit: resource rlim
setsid:
setsockopt: fd level optname optval optlen
settimeofday: tv tz
setuid: uid
setxattr: pathname name value size flags
shmat: shmid shmaddr shmflg
shmctl: shmid cmd buf
shmdt: shmaddr
shmget: key size shmflg
shutdown: fd how
sigaltstack: uss uoss
signalfd: ufd user_mask sizemask
signalfd4: ufd user_mask sizemask flags
socket: family type protocol
socketpair: family type protocol usockvec
splice: fd_in off_in fd_out off_out len flags
stat: filename statbuf
statfs: pathname buf
statx: dfd filename flags mask buffer
symlink: oldname newname
symlinkat: oldname newdfd newname
sync:
sync_file_range: fd offset nbytes flags
syncfs: fd
sysinfo: info
tee: fdin fdout len flags
tgkill: tgid pid sig
time: tloc
timer_create: which_clock timer_event_spec created_timer_id
timer_delete: timer_id
timer_getoverrun: timer_id
timer_gettime: timer_id setting
timer_settime: timer_id flags new_setting old_setting
timerfd_create: clockid flags
timerfd_gettime: ufd otmr
timerfd_settime: ufd flags utmr otmr
times: tbuf
tkill: pid sig
truncate: path length
umask: mask
uname: name
unlink: pathname
unlinkat: dfd pathname flag
unshare: unshare_flags
utime: filename times
utimensat: dfd filename utimes flags
utimes: filename utimes
vfork:
vmsplice: fd uiov nr_segs flags
wait4: upid stat_addr options ru
waitid: which upid infop options ru
write: fd buf count
writev: fd vec vlen
"""

SYSCALL_ARGUMENTS = {
    call: tuple(names.split()) for call, _, names in (line.partition(":") for line in _LINES.strip().splitlines())
}

# clone(2): the two ISAs have the last two in another order (CONFIG_CLONE_BACKWARDS).
CLONE_ARGUMENTS = {
    "aarch64": ("clone_flags", "newsp", "parent_tidptr", "tls", "child_tidptr"),
    "x86_64": ("clone_flags", "newsp", "parent_tidptr", "child_tidptr", "tls"),
}
