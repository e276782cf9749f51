// What counters count by USR and OS, by EN and by the global control, at both privileges. The exit status says how many of
// the counts are wrong.
        .include "pc.x86_64.inc"
        image

// Four counters at once: both levels, OS, USR, and neither. Counted are three, in_user's seven, and behind the call one and
// stop's four; with privilege 3 two and the call.
main:   wr      GLOBAL_CTRL, 0          // 4    at reset all are enabled
        wr      PERFEVTSEL0, INSTRUCTIONS | USR | OS | EN // 4
        wr      PERFEVTSEL0 + 1, INSTRUCTIONS | OS | EN // 4
        wr      PERFEVTSEL0 + 2, INSTRUCTIONS | USR | EN // 4
        wr      PERFEVTSEL0 + 3, INSTRUCTIONS | EN // 4
        wr      GLOBAL_CTRL, 15         // 4
        nops    3                       // 3
        in_user user                    // 7, and there 3, and 1
        stop                            // 4
        count   0                       // 4
        expect  3 + 7 + 3 + 1 + 4       // 3
        count   1                       // 4
        expect  3 + 7 + 1 + 4           // 3
        count   2                       // 4
        expect  3                       // 3
        count   3                       // 4
        expect  0                       // 3

// Branches: IRETQ, INT, and called's JMP; the first and the last with OS. Then without EN, and without the global control's.
        wr      PMC0, 0                 // 4
        wr      PMC0 + 1, 0             // 4
        wr      PMC0 + 2, 0             // 4
        wr      PERFEVTSEL0, BRANCHES | USR | OS | EN // 4
        wr      PERFEVTSEL0 + 1, BRANCHES | OS | EN // 4
        wr      PERFEVTSEL0 + 2, INSTRUCTIONS | USR | OS // 4
        wr      PERFEVTSEL0 + 3, INSTRUCTIONS | USR | OS | EN // 4
        wr      GLOBAL_CTRL, 7          // 4
        in_user user                    // 7, and there 3, and 1
        stop                            // 4
        count   0                       // 4
        expect  3                       // 3
        count   1                       // 4
        expect  2                       // 3
        count   2                       // 4
        expect  0                       // 3
        count   3                       // 4
        expect  0                       // 3
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 9 + 2 * 8: "filters\n"

user:   nops    2                       // 2, twice
        int     $CALL                   // 1
text:   .asciz  "filters\n"

        gates
        gate    CALL, called, 3
        gates_end
