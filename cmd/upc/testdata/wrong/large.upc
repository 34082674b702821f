// Arrays that have no room in the segment.
shared int b[8000000 * THREADS];
shared [1000] int c[10000000 * THREADS];
int main(void) { return 0; }
