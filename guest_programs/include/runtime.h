/* What the C guest programs have instead of a C library: everything that they need and nothing that varies. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <stddef.h>
#include <stdint.h>

long write_bytes(int fd, const void* bytes, unsigned long size);
_Noreturn void exit_program(int status);

void* memcpy(void* restrict to, const void* restrict from, size_t size);
void* memset(void* to, int byte, size_t size);

/* argv[1] as a number between least and most, or `otherwise` without one; a message and exit 2 for anything else. */
unsigned argument(int argc, char** argv, unsigned otherwise, unsigned least, unsigned most);

/* "<name> <number in hex>\n" on stdout. */
void print_checksum(const char* name, uint64_t checksum);

/* The same pseudo-random numbers on every machine (xorshift64). */
uint64_t next_random(uint64_t* state);

#endif
