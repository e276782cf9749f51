/* Shared segments, semaphores and message queues of System V. Ids are the system's own and are not shown. */
#include "show.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>

union semun { int val; struct semid_ds *buf; unsigned short *array; };
static key_t key;

static void segments(void) {
    struct shmid_ds of;
    SHOW(shmget(key, 5000, 0600));
    SHOW(shmget(key, 0, IPC_CREAT | 0600));
    int id = shmget(key, 5000, IPC_CREAT | 0640);
    SHOW(id >= 0);
    SHOW(shmget(key, 5000, IPC_CREAT | IPC_EXCL | 0600));
    SHOW(shmget(key, 0, 0) == id);
    SHOW(shmget(key, 6000, 0));
    SHOW(shmctl(id, IPC_STAT, &of));
    printf("%zu %o %d %d\n", of.shm_segsz, of.shm_perm.mode, (int)of.shm_nattch, of.shm_cpid == getpid());
    SHOW(of.shm_atime | of.shm_dtime | of.shm_lpid);
    SHOW(of.shm_ctime > 0);
    char *one = shmat(id, NULL, 0);
    SHOW(one != (void *)-1);
    char *two = shmat(id, NULL, SHM_RDONLY);
    SHOW(two != one && two != (void *)-1);
    strcpy(one + 4900, "shared");
    puts(two + 4900);
    SHOW(mprotect(two, 4096, PROT_READ | PROT_WRITE));
    SHOW((long)shmat(id, one + 1, 0));
    SHOW((long)shmat(id, one, 0));
    SHOW((long)shmat(id, NULL, SHM_REMAP));
    SHOW((long)shmat(987654321, NULL, 0));
    void *third = shmat(id, two + 5, SHM_RND | SHM_REMAP | SHM_RDONLY);
    SHOW(third == two);
    shmctl(id, IPC_STAT, &of);
    SHOW(of.shm_nattch);
    SHOW(of.shm_atime > 0);
    pid_t child = fork();
    if (!child) {
        shmctl(id, IPC_STAT, &of);
        SHOW(of.shm_nattch);
        strcpy(one, "by the child");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    puts(two);
    SHOW(shmdt(one + 4096));
    SHOW(shmdt(one));
    SHOW(shmdt(one));
    shmctl(id, IPC_STAT, &of);
    SHOW(of.shm_nattch);
    of.shm_perm.mode = 0604;
    SHOW(shmctl(id, IPC_SET, &of));
    SHOW(shmctl(id, SHM_LOCK, NULL));
    SHOW(shmctl(id, IPC_RMID, NULL));
    SHOW(shmctl(id, IPC_STAT, &of));
    printf("%o %d %d\n", of.shm_perm.mode, (int)of.shm_nattch, of.shm_perm.__key);
    SHOW(shmget(key, 5000, 0600));
    one = shmat(id, NULL, 0);
    puts(one + 4900);
    shmdt(two);
    shmdt(one);
    SHOW(shmctl(id, IPC_STAT, &of));
    SHOW((long)shmat(id, NULL, 0));
    SHOW(shmctl(id, 999, &of));
    id = shmget(IPC_PRIVATE, 4096, 0600);
    one = shmat(id, NULL, 0);
    strcpy(one, "kept");
    shmdt(one);
    two = shmat(id, NULL, 0);
    puts(two);
    shmctl(id, IPC_RMID, NULL);
    munmap(two, 4096);
    SHOW(shmctl(id, IPC_STAT, &of));
}

static int operate(int id, int number, int change, int flags) {
    struct sembuf one = {number, change, flags};
    return semop(id, &one, 1);
}

static void semaphores(void) {
    struct semid_ds of;
    unsigned short values[3] = {4, 5, 6};
    SHOW(semget(key, 3, 0600));
    SHOW(semget(key, 0, IPC_CREAT | 0600));
    int id = semget(key, 3, IPC_CREAT | 0600);
    SHOW(id >= 0);
    SHOW(semget(key, 4, 0));
    SHOW(semctl(id, 0, SETALL, values));
    SHOW(semctl(id, 1, GETVAL));
    SHOW(semctl(id, 3, GETVAL));
    SHOW(semctl(id, 2, SETVAL, 0));
    SHOW(semctl(id, 2, SETVAL, 40000));
    SHOW(semctl(id, 2, SETVAL, -1));
    memset(values, 0, sizeof values);
    SHOW(semctl(id, 0, GETALL, values));
    printf("%d %d %d\n", values[0], values[1], values[2]);
    SHOW(operate(id, 0, -2, 0));
    SHOW(semctl(id, 0, GETPID) == getpid());
    SHOW(operate(id, 0, -3, IPC_NOWAIT));
    SHOW(operate(id, 0, 0, IPC_NOWAIT));
    SHOW(operate(id, 2, 0, IPC_NOWAIT));
    SHOW(operate(id, 3, 0, 0));
    SHOW(operate(id, 0, 32767, 0));
    struct sembuf both[2] = {{0, -1, IPC_NOWAIT}, {2, -1, IPC_NOWAIT}};
    SHOW(semop(id, both, 2));
    SHOW(semctl(id, 0, GETVAL));
    SHOW(semop(id, both, 0));
    SHOW(semop(id, both, 501));
    struct timespec soon = {0, 10000000}, invalid = {0, 2000000000};
    both[1].sem_flg = 0;
    SHOW(semtimedop(id, both, 2, &soon));
    SHOW(semtimedop(id, both, 2, &invalid));
    SHOW(semctl(id, 0, IPC_STAT, &of));
    printf("%lu %o %d %d\n", of.sem_nsems, of.sem_perm.mode, of.sem_otime > 0, of.sem_ctime > 0);

    pid_t child = fork();
    if (!child) {
        semop(id, both, 2); /* waits for semaphore 2 */
        operate(id, 1, -2, SEM_UNDO);
        operate(id, 0, 7, SEM_UNDO);
        SHOW(semctl(id, 1, GETVAL));
        _exit(0);
    }
    while (semctl(id, 2, GETNCNT) != 1) usleep(1000);
    SHOW(semctl(id, 2, GETZCNT));
    int freed = operate(id, 2, 1, 0);
    waitpid(child, NULL, 0);
    SHOW(freed);
    semctl(id, 0, GETALL, values);
    printf("%d %d %d\n", values[0], values[1], values[2]);

    child = fork();
    if (!child) {
        SHOW(operate(id, 0, 0, 0));
        _exit(0);
    }
    while (semctl(id, 0, GETZCNT) != 1) usleep(1000);
    int zero = semctl(id, 0, SETVAL, 0);
    waitpid(child, NULL, 0);
    SHOW(zero);

    child = fork();
    if (!child) {
        SHOW(operate(id, 0, -1, 0));
        _exit(0);
    }
    while (semctl(id, 0, GETNCNT) != 1) usleep(1000);
    int removed = semctl(id, 0, IPC_RMID);
    waitpid(child, NULL, 0);
    SHOW(removed);
    SHOW(operate(id, 0, 1, 0));
    SHOW(semctl(id, 0, GETVAL));
}

static void *nothing(int signal) { (void)signal; return NULL; }

struct message { long type; char text[9000]; };

static void queues(void) {
    struct msqid_ds of;
    static struct message out, in;
    SHOW(msgget(key, 0600));
    int id = msgget(key, IPC_CREAT | 0600);
    SHOW(id >= 0);
    SHOW(msgget(key, IPC_CREAT | IPC_EXCL | 0600));
    out.type = 0;
    SHOW(msgsnd(id, &out, 4, 0));
    out.type = 3;
    SHOW(msgsnd(id, &out, 8193, 0));
    for (int type = 5; type > 0; type--) {
        out.type = type;
        sprintf(out.text, "message %d", type);
        SHOW(msgsnd(id, &out, 10, 0));
    }
    SHOW(msgctl(id, IPC_STAT, &of));
    printf("%lu %lu %lu %d\n", of.msg_qnum, (long)of.__msg_cbytes, of.msg_qbytes, of.msg_lspid == getpid());
    SHOW(msgrcv(id, &in, 4, 3, 0));
    SHOW(msgrcv(id, &in, 4, 3, MSG_NOERROR));
    printf("%ld %.4s\n", in.type, in.text);
    SHOW(msgrcv(id, &in, 100, 3, IPC_NOWAIT));
    SHOW(msgrcv(id, &in, 100, 0, 0));
    SHOW(in.type);
    SHOW(msgrcv(id, &in, 100, -4, 0));
    SHOW(in.type);
    SHOW(msgrcv(id, &in, 100, 4, MSG_EXCEPT));
    SHOW(in.type);
    SHOW(msgrcv(id, &in, 100, -2, IPC_NOWAIT));
    SHOW(msgrcv(id, &in, 100, 0, 0));
    SHOW(in.type);
    out.type = 1;
    SHOW(msgsnd(id, &out, 8192, 0));
    SHOW(msgsnd(id, &out, 8192, 0));
    SHOW(msgsnd(id, &out, 1, IPC_NOWAIT));
    pid_t child = fork();
    if (!child) {
        SHOW(msgsnd(id, &out, 7, 0)); /* waits for room */
        _exit(0);
    }
    usleep(20000);
    int taken = msgrcv(id, &in, 9000, 0, 0);
    waitpid(child, NULL, 0);
    SHOW(taken);
    SHOW(msgrcv(id, &in, 9000, 0, 0));
    SHOW(msgrcv(id, &in, 9000, 0, 0));
    child = fork();
    if (!child) {
        SHOW(msgrcv(id, &in, 100, 9, 0));
        SHOW(msgrcv(id, &in, 100, 9, 0));
        _exit(0);
    }
    usleep(20000);
    out.type = 9;
    int sent = msgsnd(id, &out, 2, 0);
    usleep(20000);
    int removed = msgctl(id, IPC_RMID, NULL);
    waitpid(child, NULL, 0);
    SHOW(sent);
    SHOW(removed);
    SHOW(msgsnd(id, &out, 2, 0));
    SHOW(msgctl(id, IPC_STAT, &of));
    id = msgget(IPC_PRIVATE, 0600);
    struct sigaction action = {.sa_handler = (void *)nothing, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    SHOW(msgrcv(id, &in, 100, 9, 0));
    msgctl(id, IPC_RMID, NULL);
}

int main(int argc, char **argv) {
    key = getpid() << 8 | 'k';
    segments();
    semaphores();
    queues();
    return 0;
}
