// A program whose library calls every allocation entry point there is; the loader relocates the library before libcadastre.so.
int run_entries(void);
int main(void) { return run_entries(); }
