/* Where the kernel itself keeps a process's mappings, for code that user space has not told of yet: young processes, and
 * those in the middle of mmap(). The tree (lib/maple_tree.c, since Linux 6.1) is read without its lock, which an interrupt
 * could not wait for: nodes are replaced, not changed, and freed after a grace period that the program holds off. What
 * is found is believed only if it covers the address and its leaf still names it afterwards. Part of sampler.bpf.c.
 */
#ifndef CPROF_SAMPLER_VMA_BPF_H
#define CPROF_SAMPLER_VMA_BPF_H

/* A node is 256 bytes, 256-aligned: its parent, pivots (the last address of each slot; what follows the last in use is 0),
 * slots. The last slot has no pivot, it reaches to the end of the node. A dead node is its own parent. */
#define MAPLE_NODE_MASK 255ull
#define MAPLE_LEVELS 8

struct maple_shape {
  uint32_t pivots, slots_at;
};

SAMPLER_INLINE int is_kind(uint64_t node, uint64_t kind) { return (node >> 3 & 15) == kind; }

/* One level down; 1: the search is over. A global function, as each level would be verified anew. */
__attribute__((noinline)) int vma_descend(uint32_t slot) {
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  if (!scratch) return 1;
  struct vma_search *search = &scratch->search;
  uint64_t place = search->node & ~MAPLE_NODE_MASK;
  int is_leaf = is_kind(search->node, bpf_core_enum_value(enum maple_type, maple_leaf_64));
  int is_wide = is_kind(search->node, bpf_core_enum_value(enum maple_type, maple_arange_64));
  if (!is_leaf && !is_wide && !is_kind(search->node, bpf_core_enum_value(enum maple_type, maple_range_64))) return 1;
  struct maple_shape shape = {15, 16};
  if (is_wide) shape = (struct maple_shape){9, 10};
  if (bpf_probe_read_kernel(search->words, sizeof(search->words), (void *)place)) return 1;
  if ((search->words[0] & ~MAPLE_NODE_MASK) == place) return 1;
  uint32_t at = 0;
  for (; at < 15; at++) {
    uint64_t last = search->words[1 + at];
    if (at >= shape.pivots || last >= search->address || (at && !last)) break;
  }
  uint64_t word = at_most(shape.slots_at + at, 31);
  if (is_leaf) {
    search->vma = search->words[word];
    search->vma_at = place + word * sizeof(uint64_t);
    return 1;
  }
  search->node = search->words[word];
  return 0;
}

SAMPLER_INLINE void search_vma(struct scratch *scratch, const struct mm_struct *mm, uint32_t slot, uint64_t address) {
  struct vma_search *search = &scratch->search;
  search->vma = search->vma_at = 0;
  search->address = address;
  if (!bpf_core_field_exists(mm->mm_mt)) return;
  search->node = (uint64_t)mm->mm_mt.ma_root;
  if ((search->node & 3) != 2) return;  /* the tree is one entry, or nothing: no program runs there */
  for (int level = 0; level < MAPLE_LEVELS; level++)
    if (vma_descend(slot)) break;
}

/* The leaf still says what it said when its mapping was read. */
SAMPLER_INLINE int is_unchanged(const struct vma_search *search) {
  uint64_t now = 0;
  return bpf_probe_read_kernel(&now, sizeof(now), (void *)search->vma_at) == 0 && now == search->vma;
}

SAMPLER_INLINE uint32_t module_of_vma(const struct mm_struct *mm, struct vm_area_struct *vma) {
  struct sampler_file_key key = {};
  struct file *file = BPF_CORE_READ(vma, vm_file);
  if (file) {
    key.inode = BPF_CORE_READ(file, f_inode, i_ino);
    key.device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
  } else if (BPF_CORE_READ(vma, vm_start) == (uint64_t)mm->context.vdso) {
    key.device = SAMPLER_VDSO_DEVICE;
  }
  const uint32_t *module = bpf_map_lookup_elem(&files, &key);
  return module ? *module : 0;
}

/* A global function, as three places call it. 1: walk.found holds the mapping. */
__attribute__((noinline)) int look_up_mapping(uint32_t slot, uint64_t pc) {
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
  if (!scratch || !mm) return 0;
  const struct vma_search *search = &scratch->search;
  search_vma(scratch, mm, slot, pc);
  if (!search->vma_at) return 0;
  struct vm_area_struct *vma = (struct vm_area_struct *)search->vma;
  struct sampler_mapping found = {};
  if (vma) {
    found.start = BPF_CORE_READ(vma, vm_start);
    found.end = BPF_CORE_READ(vma, vm_end);
    if (!walk_is_in(&found, pc)) return 0;
  }
  if (!vma || !(BPF_CORE_READ(vma, vm_flags) & CPROF_VM_EXEC)) {
    scratch->walk.surely_unmapped = is_unchanged(search);
    return 0;
  }
  found.bias = found.start - (BPF_CORE_READ(vma, vm_pgoff) << CP_PAGE_BITS);
  found.module = module_of_vma(mm, vma);
  if (!found.module || !is_unchanged(search)) return 0;
  scratch->walk.found = found;
  scratch->walk.hash = walk_mix(scratch->walk.hash, found.bias ^ found.module);  /* no epoch tells it from other code here */
  count(SAMPLER_LOOKED_UP);
  return 1;
}

#endif
