INCLUDE PERFETTO MODULE callstacks.stack_profile;
WITH ps AS (SELECT callsite_id FROM aggregate_sample)
SELECT * FROM _callstacks_for_stack_profile_samples!(ps) c;