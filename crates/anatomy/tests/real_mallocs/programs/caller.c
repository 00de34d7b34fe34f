/* A library that calls malloc. */
#include <stdlib.h>

void *taken(void);
void given(void *memory);

void *taken(void) { return malloc(10); }
void given(void *memory) { free(memory); }
