#include "cli/cli.h"

int main(int argc, char** argv) { return cprof::cli::run(argc, argv); }
