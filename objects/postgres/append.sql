-- tract_append writes several batches in one statement, and so in one transaction. A batch loses
-- when one of its refs has moved, and then inserts nothing. It returns the new version of each ref; 0: it lost.
--
-- Each row has the number of its batch, from 1 on, and so many elements of its arrays:
--   refs      batch, line, gen, updated, seq          ref_bytes      target, newest, prev, record
--   commits   batch, line, gen, from_line, from_gen   commit_bytes   id, head, content, body
--   blobs     batch, kind, codec                      blob_bytes     id, data
-- Rows come in the order of their keys, so that two calls do not deadlock. A commit with a from_line
-- begins a line; -1: it begins none. copies says of each batch that it has copies of objects: those that
-- have a tombstone are left out.
--
-- The lock of the repo comes first, so that gc and purge do not miss what is inserted. What follows sees
-- what they have done, unless transactions are repeatable read by default.
--
-- A ref that was deleted keeps its row, so a new row is that of a ref which never was. The swap compares
-- the hash of the newest log entry, which no two states of a ref share.
--
-- A position that another commit has, in a segment or in the tail, gives a null for the generation, and
-- so an error: the writer did not know of that commit, and begins a line of its own.
--
-- Without enable_seqscan = off a plan that was made while a table was small would read all of it for ever.
create or replace function tract_append(of_repo bigint, now bigint, class int, key int, copies bool[], names text[], refs bigint[], ref_bytes bytea[],
	commits bigint[], commit_bytes bytea[], blobs bigint[], blob_bytes bytea[]) returns bigint[]
language plpgsql set enable_seqscan = off as $$
declare
	won bool[];
	lost bool[];
	versions bigint[];
	v bigint;
	n int; -- of the last element of a row
	b int; -- the same in the other array
begin
	perform pg_advisory_xact_lock_shared(class, key);
	for i in 1 .. coalesce(cardinality(names), 0) loop
		n := 5 * i;
		b := 4 * i;
		if ref_bytes[b - 1] is null then
			insert into tract_ref (repo, name, target, line, gen, version, updated, seq, newest)
			values (of_repo, names[i], ref_bytes[b - 3], refs[n - 3], refs[n - 2], 1, refs[n - 1], refs[n], ref_bytes[b - 2])
			on conflict do nothing returning version into v;
		else
			update tract_ref r set target = ref_bytes[b - 3], line = refs[n - 3], gen = refs[n - 2], version = r.version + 1,
				updated = refs[n - 1], seq = refs[n], newest = ref_bytes[b - 2], prev = ref_bytes[b - 1]
			where r.repo = of_repo and r.name = names[i] and r.newest = ref_bytes[b - 1] returning r.version into v;
		end if;
		if found then
			won[refs[n - 4]] := true;
			insert into tract_log (repo, seq, name, record) values (of_repo, refs[n], names[i], ref_bytes[b]);
		else
			lost[refs[n - 4]] := true;
		end if;
		if won[refs[n - 4]] and lost[refs[n - 4]] then
			raise sqlstate 'TRACT' using message = 'one of several refs has moved';
		end if;
		versions[i] := coalesce(v, 0);
	end loop;
	for i in 1 .. coalesce(cardinality(commits), 0) / 5 loop
		n := 5 * i;
		b := 4 * i;
		if lost[commits[n - 4]] is null then
			if commits[n - 1] >= 0 then
				insert into tract_line (repo, line, first, from_line, from_gen, sealed)
				values (of_repo, commits[n - 3], commits[n - 2], commits[n - 1], commits[n], commits[n - 2]);
			end if;
			insert into tract_tail (repo, line, gen, id, head, content, body, put) values (of_repo, commits[n - 3],
				case when exists (select from tract_line s where s.repo = of_repo and s.line = commits[n - 3] and s.sealed > commits[n - 2])
					or exists (select from tract_tail s where s.repo = of_repo and s.line = commits[n - 3] and s.gen = commits[n - 2])
					then null else commits[n - 2] end,
				commit_bytes[b - 3], commit_bytes[b - 2], commit_bytes[b - 1],
				case when copies[commits[n - 4]] and exists (select from tract_tombstone t where t.repo = of_repo and t.id = commit_bytes[b - 1])
					then null else commit_bytes[b] end,
				now);
		end if;
	end loop;
	for i in 1 .. coalesce(cardinality(blobs), 0) / 3 loop
		n := 3 * i;
		b := 2 * i;
		if lost[blobs[n - 2]] is null and not (copies[blobs[n - 2]] and exists (
				select from tract_tombstone t where t.repo = of_repo and t.id = blob_bytes[b - 1])) then
			insert into tract_blob as o (repo, id, kind, codec, data, put)
			values (of_repo, blob_bytes[b - 1], blobs[n - 1], blobs[n], blob_bytes[b], now)
			on conflict (repo, id) do update set put = excluded.put where o.put < excluded.put - 3600000;
		end if;
	end loop;
	return versions;
end $$;

update tract_schema set version = 3;
