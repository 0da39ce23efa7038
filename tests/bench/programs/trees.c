/* Binary trees, made and dropped: nothing but small blocks, most of them live for long. trees DEPTH ROUNDS THREADS
 * Each round makes a tree of 2^DEPTH - 1 nodes of 40 bytes beside one that stays. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
  struct node *left, *right;
  long value[3];
};

static int depth, rounds;

static struct node *make(int levels) {
  if (levels == 0) return NULL;
  struct node *node = malloc(sizeof(*node));
  if (node == NULL) abort();
  node->value[0] = levels;
  node->left = make(levels - 1);
  node->right = make(levels - 1);
  return node;
}

static long drop(struct node *node) {
  if (node == NULL) return 0;
  const long count = 1 + drop(node->left) + drop(node->right);
  free(node);
  return count;
}

static void *work(void *count) {
  struct node *stays = make(depth);
  for (int i = 0; i < rounds; i++) *(long *)count += drop(make(depth));
  *(long *)count += drop(stays);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  depth = atoi(argv[1]);
  rounds = atoi(argv[2]);
  const int threads = atoi(argv[3]);
  pthread_t ids[16];
  long counts[16] = {0}, all = 0;
  if (threads < 1 || threads > 16) return 2;
  for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, &counts[i]);
  for (int i = 0; i < threads; i++) {
    pthread_join(ids[i], NULL);
    all += counts[i];
  }
  printf("%ld nodes\n", all);
  return 0;
}
