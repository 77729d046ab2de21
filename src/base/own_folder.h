// Folders of the user who runs us, for what is kept between runs: caches, histories. Whoever keeps something asks here; nothing
// here prints or fails: what cannot be kept is not kept.
#pragma once

#include <string>

namespace cprof {

// Whether it is there and belongs to the effective user. Under sudo HOME may still be the caller's: root must not leave files
// there, nor trust them.
bool is_own_folder(const std::string& path);

void make_folders(const std::string& path);  // with all that are missing above it, each for its owner alone

// $XDG_STATE_HOME/cprof, else ~/.local/state/cprof, made when it is not there; "" where it would not be ours.
std::string state_folder();

}  // namespace cprof
