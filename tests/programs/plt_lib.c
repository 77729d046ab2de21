// A one-instruction function behind a lazily bound PLT slot.
void tiny_in_library(void) {}
