// A hash table over all threads. Buckets are dealt to the threads in turn; each has a lock and
// a chain of nodes, which lie at the threads that have inserted them. All threads insert, look
// up and remove at once; what is left is compared with what the keys say.
//
//	hashtable [KEYS]
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>

#define BUCKETS 16 /* of each thread */

typedef struct node node_t;
typedef shared [] node_t *ref_t;
struct node {
  unsigned long key;
  long count;
  ref_t next;
};

typedef struct {
  ref_t head;
  int length;
  upc_lock_t *lock;
} bucket_t;

shared bucket_t table[BUCKETS * THREADS];
shared long distinct[THREADS], total[THREADS], longest[THREADS];
static long errors;

/* The finalizer of a well-known generator mixes the bits of a key. */
static unsigned long mix(unsigned long z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9UL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebUL;
  return z ^ z >> 31;
}

static shared bucket_t *bucket_of(unsigned long key) {
  return &table[mix(key) % (BUCKETS * THREADS)];
}

/* With the bucket's lock held: the node with a key, or a null pointer. */
static ref_t find(shared bucket_t *b, unsigned long key) {
  ref_t p;
  for (p = b->head; p != NULL && p->key != key; p = p->next)
    ;
  return p;
}

/* Adds n to the count of a key, and inserts it if it is not there. */
static void add(unsigned long key, long n) {
  shared bucket_t *b = bucket_of(key);
  ref_t p;
  upc_lock(b->lock);
  if ((p = find(b, key)) == NULL) {
    p = upc_alloc(sizeof(node_t));
    node_t *local = (node_t *)p; /* it is this thread's */
    local->key = key;
    local->count = 0;
    local->next = b->head;
    b->head = p;
    b->length++;
  }
  p->count += n;
  upc_unlock(b->lock);
}

static long count(unsigned long key) {
  shared bucket_t *b = bucket_of(key);
  ref_t p;
  long n;
  upc_lock(b->lock);
  n = (p = find(b, key)) ? p->count : -1;
  upc_unlock(b->lock);
  return n;
}

/* Removes a key; the node may lie at any thread. */
static int delete(unsigned long key) {
  shared bucket_t *b = bucket_of(key);
  ref_t p, before = NULL;
  upc_lock(b->lock);
  for (p = b->head; p && p->key != key; before = p, p = p->next)
    continue;
  if (p) {
    if (before)
      before->next = p->next;
    else
      b->head = p->next;
    --b->length;
  }
  upc_unlock(b->lock);
  if (!p)
    return 0;
  upc_free(p);
  return 1;
}

static void check(int ok, const char *what, long i) {
  if (!ok && errors++ < 5)
    printf("thread %d: %s is wrong for %ld\n", MYTHREAD, what, i);
}

/* What the thread's own buckets hold. */
static void survey(void) {
  int b;
  distinct[MYTHREAD] = total[MYTHREAD] = longest[MYTHREAD] = 0;
  upc_forall (b = 0; b < BUCKETS * THREADS; b++; &table[b]) {
    long n = 0;
    for (ref_t p = table[b].head; p; p = p->next, n++) {
      total[MYTHREAD] += p->count;
      check(bucket_of(p->key) == &table[b], "the bucket", p->key);
    }
    check(n == table[b].length, "the length of bucket", b);
    distinct[MYTHREAD] += n;
    if (n > longest[MYTHREAD])
      longest[MYTHREAD] = n;
  }
}

static long sum(shared long *v) {
  long s = 0;
  int i;
  for (i = 0; i < THREADS; i++)
    s += v[i];
  return s;
}

int main(int argc, char *argv[]) {
  long keys = argc > 1 ? atol(argv[1]) : 200, i;
  int b;
  upc_forall (b = 0; b < BUCKETS * THREADS; b++; &table[b])
    table[b].lock = upc_global_lock_alloc();
  upc_barrier;

  /* Every thread adds every key, each from another one on. */
  for (i = 0; i < keys; i++) {
    long k = (i + MYTHREAD * keys / THREADS) % keys;
    add(k, MYTHREAD + 1);
    if (k % 3 == 0)
      add(k, 100);
  }
  upc_barrier;
  long each = (long)THREADS * (THREADS + 1) / 2;
  for (i = 0; i < keys; i++)
    check(count(i) == each + (i % 3 ? 0 : 100 * THREADS), "the count", i);
  check(count(keys) == -1, "an absent key", keys);
  survey();
  upc_barrier;
  if (MYTHREAD == 0)
    printf("hashtable: %ld keys, %d off in sum\n", sum(distinct),
           (int)(sum(total) - keys * each - (keys + 2) / 3 * 100 * THREADS));
  upc_barrier;

  /* All try to remove each odd key, and one of them does. */
  long gone = 0;
  for (i = 1; i < keys; i += 2)
    gone += delete(i);
  total[MYTHREAD] = gone;
  upc_barrier;
  if (MYTHREAD == 0)
    printf("hashtable: %ld removed\n", sum(total));
  upc_barrier;
  survey();
  for (i = MYTHREAD; i < keys; i += THREADS)
    check((count(i) == -1) == i % 2, "the presence", i);
  upc_barrier;
  if (MYTHREAD == THREADS - 1)
    printf("hashtable: %ld left\n", sum(distinct));
  upc_forall (b = 0; b < BUCKETS * THREADS; b++; &table[b])
    upc_lock_free(table[b].lock);
  return errors != 0;
}
