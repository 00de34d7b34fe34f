/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Every task of the kernel as a binary record: a long one for the leader of a thread group, which is what /proc calls a
 * process, and the first part of one for each of its other threads. The reader (tasks/iterator.rs) adds threads up.
 *
 * It only reads. Structures are declared with the few members that are used; where these lie is known to the kernel's
 * own types (BTF) when the program is loaded. What a kernel may not have is asked for by EXISTS, and left 0 where /proc
 * shows 0 as well. Whether the values are right is for a self-test against /proc to say, not for this file.
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SECTION(name) __attribute__((section(name), used))
/* Kinds 0 and 2 of the compiler's field information: where it lies, and whether there is one. */
#define OFFSET(field) __builtin_preserve_field_info(field, 0)
#define EXISTS(field) __builtin_preserve_field_info(field, 2)

/* Numbers of helpers (include/uapi/linux/bpf.h). */
static long (*const seq_write)(void *seq, const void *data, u32 length) = (void *)127;
static long (*const probe_read_kernel)(void *to, u32 length, const void *from) = (void *)113;
static void *(*const lookup_percpu)(void *map, const void *key, u32 cpu) = (void *)195;

/* The kernel's counters of pages by kind, include/linux/mm_types_task.h. */
enum { FILE_PAGES, ANON_PAGES, SWAP_ENTRIES, SHMEM_PAGES, COUNTERS };
/* include/linux/sched.h */
enum { PF_KTHREAD = 0x00200000 };
enum { COMM = 16, MOST_CPUS = 512 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;
struct bpf_iter_meta { struct seq_file *seq; u64 session_id; u64 seq_num; };
struct kernfs_node { u64 id; };
struct cgroup { struct kernfs_node *kn; };
struct css_set { struct cgroup *dfl_cgrp; };
struct task_io_accounting { u64 rchar, wchar, read_bytes, write_bytes, cancelled_write_bytes; };
struct prev_cputime { u64 utime, stime; };
struct sched_entity { u64 sum_exec_runtime; };
struct task_delay_info { u64 blkio_delay; };
struct number { long counter; };  /* atomic_long_t, atomic64_t */
struct percpu_counter { s64 count; s32 *counters; };

struct mm_struct {
	unsigned long total_vm, data_vm, locked_vm, hiwater_rss;
	struct number pgtables_bytes, pinned_vm, hugetlb_usage;
	struct percpu_counter rss_stat[COUNTERS];
};
/* Before 6.2. */
struct mm_rss_stat___before_6_2 { struct number count[COUNTERS]; };
struct mm_struct___before_6_2 { struct mm_rss_stat___before_6_2 rss_stat; };

struct signal_struct {
	int nr_threads;
	struct prev_cputime prev_cputime;
	u64 utime, stime, sum_sched_runtime;
	unsigned long min_flt, maj_flt;
	struct task_io_accounting ioac;
	short oom_score_adj;
};

struct task_struct {
	s32 pid, tgid;
	u32 flags;
	struct task_struct *real_parent;
	u64 start_boottime, utime, stime;
	unsigned long min_flt, maj_flt;
	struct sched_entity se;
	struct task_io_accounting ioac;
	struct task_delay_info *delays;
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct mm_struct *mm;
	char comm[COMM];
};

struct bpf_map;
struct bpf_array { void *pptrs[1]; };
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; };

#pragma clang attribute pop

/* Words of 64 bits only, so that there is no padding and the reader needs no knowledge of a compiler's layout. */
struct thread {
	u64 pid_and_tgid;
	u64 utime, stime, runtime; /* ns */
	u64 minflt, majflt;
	u64 rchar, wchar, read, written, cancelled; /* bytes */
};
struct process {
	struct thread group;
	u64 start; /* ns since boot */
	u64 shown_utime, shown_stime; /* what /proc showed last */
	u64 parent_and_threads, adj_and_has_mm;
	u64 cgroup;
	u64 blkio_delay; /* ns */
	u64 size, data, locked, pinned, peak; /* pages */
	u64 page_tables, hugetlb; /* bytes, pages */
	u64 file, anon, swap, shmem; /* pages */
	char name[COMM];
};

char LICENSE[] SECTION("license") = "Dual MIT/GPL";

/* How many CPUs may hold a part of a counter: set before loading. */
const volatile u32 CPUS = 1;

/* A value for each CPU of our own. Where the kernel put it shows how far each CPU's data are from where they were
 * linked, which the kernel's own table would say, but its symbol is not there on all kernels. */
struct {
	int (*type)[6]; /* BPF_MAP_TYPE_PERCPU_ARRAY */
	int (*max_entries)[1];
	u32 *key;
	u64 *value;
} OWN SECTION(".maps");
u64 offset_of_cpu[MOST_CPUS];

static __attribute__((always_inline)) void learn_offsets(void)
{
	u32 first = 0;
	u64 map = 0, linked_at = 0;
	void *own = &OWN;

	/* Through memory, as the verifier allows no arithmetic with the map itself. */
	probe_read_kernel(&map, sizeof map, &own);
	probe_read_kernel(&linked_at, sizeof linked_at, (void *)(map + OFFSET(((struct bpf_array *)0)->pptrs)));
	for (u32 cpu = 0; cpu < MOST_CPUS && cpu < CPUS; cpu++) {
		void *there = lookup_percpu(&OWN, &first, cpu);
		u64 at = 0;

		if (!there)
			break;
		probe_read_kernel(&at, sizeof at, &there);
		offset_of_cpu[cpu] = at - linked_at;
	}
}

static __attribute__((always_inline)) u64 not_below_0(s64 count)
{
	return count < 0 ? 0 : count;
}

/* Each CPU keeps up to 32 pages or two for each CPU to itself: of a small process that is all there is. */
static __attribute__((always_inline)) u64 exact(s64 sum, u64 parts)
{
	for (u32 cpu = 0; cpu < MOST_CPUS && cpu < CPUS; cpu++) {
		s32 part = 0;

		probe_read_kernel(&part, sizeof part, (void *)(parts + offset_of_cpu[cpu]));
		sum += part;
	}
	return not_below_0(sum);
}

/* Read by address: the verifier of these kernels does not follow an array of a named type. */
static __attribute__((always_inline)) u64 shared(u64 address)
{
	s64 count = 0;

	probe_read_kernel(&count, sizeof count, (void *)address);
	return not_below_0(count);
}

/* The compiler leaves it to the loader where an element lies only if its index is written out. */
#define EXACT(mm, kind) exact((mm)->rss_stat[kind].count, (u64)(mm)->rss_stat[kind].counters)
#define SHARED(mm, kind) shared((u64)(mm) + OFFSET(((struct mm_struct___before_6_2 *)0)->rss_stat.count[kind].counter))

/* Since 6.6 the parts of the four counters lie side by side on each CPU: one read instead of four. */
struct parts { s32 of[COUNTERS]; };

static __attribute__((always_inline)) int are_side_by_side(struct mm_struct *mm)
{
	u64 file = (u64)mm->rss_stat[FILE_PAGES].counters;
	u64 anon = (u64)mm->rss_stat[ANON_PAGES].counters;
	u64 swap = (u64)mm->rss_stat[SWAP_ENTRIES].counters;
	u64 shmem = (u64)mm->rss_stat[SHMEM_PAGES].counters;

	return anon == file + sizeof(s32) && swap == anon + sizeof(s32) && shmem == swap + sizeof(s32);
}

static __attribute__((always_inline)) void read_parts(struct process *p, struct mm_struct *mm)
{
	u64 first = (u64)mm->rss_stat[FILE_PAGES].counters;
	s64 file = mm->rss_stat[FILE_PAGES].count, anon = mm->rss_stat[ANON_PAGES].count;
	s64 swap = mm->rss_stat[SWAP_ENTRIES].count, shmem = mm->rss_stat[SHMEM_PAGES].count;

	for (u32 cpu = 0; cpu < MOST_CPUS && cpu < CPUS; cpu++) {
		struct parts parts = {};

		probe_read_kernel(&parts, sizeof parts, (void *)(first + offset_of_cpu[cpu]));
		file += parts.of[FILE_PAGES];
		anon += parts.of[ANON_PAGES];
		swap += parts.of[SWAP_ENTRIES];
		shmem += parts.of[SHMEM_PAGES];
	}
	p->file = not_below_0(file);
	p->anon = not_below_0(anon);
	p->swap = not_below_0(swap);
	p->shmem = not_below_0(shmem);
}

static __attribute__((always_inline)) void read_pages(struct process *p, struct mm_struct *mm)
{
	if (EXISTS(mm->rss_stat[0].counters) && are_side_by_side(mm)) {
		read_parts(p, mm);
	} else if (EXISTS(mm->rss_stat[0].counters)) {
		p->file = EXACT(mm, FILE_PAGES);
		p->anon = EXACT(mm, ANON_PAGES);
		p->swap = EXACT(mm, SWAP_ENTRIES);
		p->shmem = EXACT(mm, SHMEM_PAGES);
	} else {
		p->file = SHARED(mm, FILE_PAGES);
		p->anon = SHARED(mm, ANON_PAGES);
		p->swap = SHARED(mm, SWAP_ENTRIES);
		p->shmem = SHARED(mm, SHMEM_PAGES);
	}
}

static __attribute__((always_inline)) void read_memory(struct process *p, struct mm_struct *mm)
{
	p->size = mm->total_vm;
	p->data = mm->data_vm;
	p->locked = mm->locked_vm;
	p->pinned = mm->pinned_vm.counter;
	p->peak = mm->hiwater_rss;
	if (EXISTS(mm->pgtables_bytes))
		p->page_tables = mm->pgtables_bytes.counter;
	if (EXISTS(mm->hugetlb_usage))
		p->hugetlb = mm->hugetlb_usage.counter;
	read_pages(p, mm);
}

static __attribute__((always_inline)) void read_thread(struct thread *r, struct task_struct *t)
{
	r->pid_and_tgid = (u64)(u32)t->pid << 32 | (u32)t->tgid;
	r->utime = t->utime;
	r->stime = t->stime;
	r->runtime = t->se.sum_exec_runtime;
	r->minflt = t->min_flt;
	r->majflt = t->maj_flt;
	if (EXISTS(t->ioac.rchar)) {
		r->rchar = t->ioac.rchar;
		r->wchar = t->ioac.wchar;
	}
	if (EXISTS(t->ioac.read_bytes)) {
		r->read = t->ioac.read_bytes;
		r->written = t->ioac.write_bytes;
		r->cancelled = t->ioac.cancelled_write_bytes;
	}
}

/* What threads that have ended left to their group. */
static __attribute__((always_inline)) void add_ended(struct thread *r, struct signal_struct *g)
{
	r->utime += g->utime;
	r->stime += g->stime;
	r->runtime += g->sum_sched_runtime;
	r->minflt += g->min_flt;
	r->majflt += g->maj_flt;
	if (EXISTS(g->ioac.rchar)) {
		r->rchar += g->ioac.rchar;
		r->wchar += g->ioac.wchar;
	}
	if (EXISTS(g->ioac.read_bytes)) {
		r->read += g->ioac.read_bytes;
		r->written += g->ioac.write_bytes;
		r->cancelled += g->ioac.cancelled_write_bytes;
	}
}

static __attribute__((always_inline)) void read_leader(struct process *p, struct task_struct *t)
{
	struct signal_struct *g = t->signal;
	/* A kernel thread that works for a process borrows its memory; /proc does not count it as the thread's. */
	struct mm_struct *mm = t->flags & PF_KTHREAD ? 0 : t->mm;

	read_thread(&p->group, t);
	add_ended(&p->group, g);
	p->start = t->start_boottime;
	if (EXISTS(g->prev_cputime.utime)) {
		p->shown_utime = g->prev_cputime.utime;
		p->shown_stime = g->prev_cputime.stime;
	}
	p->parent_and_threads = (u64)(u32)t->real_parent->tgid << 32 | (u32)g->nr_threads;
	p->adj_and_has_mm = (u64)(u32)(g->oom_score_adj + 1000) << 32 | !!mm;
	if (EXISTS(t->cgroups))
		p->cgroup = t->cgroups->dfl_cgrp->kn->id;
	if (EXISTS(t->delays) && t->delays)
		p->blkio_delay = t->delays->blkio_delay;
	__builtin_memcpy(p->name, t->comm, COMM);
	if (mm)
		read_memory(p, mm);
}

SECTION("iter/task")
int tasks(struct bpf_iter__task *context)
{
	struct task_struct *t = context->task;
	struct seq_file *seq = context->meta->seq;
	struct process p = {};

	if (!t)
		return 0;
	if (EXISTS(((struct mm_struct *)0)->rss_stat[0].counters) && context->meta->seq_num == 0)
		learn_offsets();
	if (t->pid == t->tgid) {
		read_leader(&p, t);
		seq_write(seq, &p, sizeof p);
	} else {
		read_thread(&p.group, t);
		seq_write(seq, &p.group, sizeof p.group);
	}
	return 0;
}
