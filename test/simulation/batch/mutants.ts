import type { Mutant } from '../mutants';

const activity = 'activities/batch/run-items.ts';
const describe = 'client/batch/describe.ts';

function mutant(rule: string, file: string, text: string, instead: string): Mutant {
  return { rule, file, text, instead, of: 'batches' };
}

/** The rules of a batch. */
export const MUTANTS_OF_BATCHES: readonly Mutant[] = [
  mutant(
    'a batch: a job with an open follow-up gets no other one',
    activity,
    " || busy.has(jobOf(this.ids.get(end) ?? ''))",
    ' || busy.has(String(this.ids.size))',
  ),
  mutant(
    'a batch: nothing is sent into the turn of a later item that somebody else has started',
    activity,
    'else if (await this.server.isOpenLater(lane))',
    'else if (lane.length === 0 && (await this.server.isOpenLater(lane)))',
  ),
  mutant(
    'a batch: two retries of an item make one run',
    'temporal/start-follow-up.ts',
    '`retry of ${runId}`',
    '`retry of ${runId} ${Math.random()}`',
  ),
  mutant(
    'a batch: one that was reset starts nothing',
    activity,
    'if (raw.workflowExtendedInfo?.lastResetTime)',
    'if (raw.workflowExtendedInfo?.lastResetTime === memo)',
  ),
  mutant(
    'a batch: follow-ups without a place count as open',
    activity,
    '.filter((id) => !held.has(id)).length',
    '.filter((id) => held.has(id) && held.size === 0).length',
  ),
  mutant(
    'a batch: a permission lasts ten seconds',
    'activities/batch/on-server.ts',
    'const leftMs = permission();',
    'const leftMs = permission() + 600_000;',
  ),
  mutant(
    'a batch: what a run that was ended early may still start is waited for',
    describe,
    'if (Date.now() < Date.parse(endedAt ??',
    'if (Date.now() < 0 * Date.parse(endedAt ??',
  ),
  mutant(
    'a batch: what was begun and is not found is not started again',
    activity,
    "if (isGone && state === 'may') return 'free';",
    "if (isGone) return 'free';",
  ),
  mutant(
    'a batch: each follow-up gets one more run by a retry',
    activity,
    'if (!isFromBefore) return end;',
    '',
  ),
  mutant(
    'a batch: a list does not tell that a message was not sent',
    'temporal/lists.ts',
    'end.delivery === null || mayBeRetried(end.delivery) ? undefined : end',
    'mayBeRetried(end.delivery) && end.delivery === null ? undefined : end',
  ),
  mutant(
    'a batch: the memo is read before each group',
    activity,
    'const ready = await this.readyLanes();\n      this.memo = await readMemo();',
    'const ready = await this.readyLanes();',
  ),
  mutant(
    'a batch: nothing starts beyond the tolerance',
    activity,
    'return !memo.paused && memo.ending === null && !isBeyondTolerance(memo, position);',
    'return !memo.paused && memo.ending === null && position.settled >= 0;',
  ),
  mutant(
    'a batch: what a group may begin is kept before it starts',
    activity,
    "for (const [next, end] of lanes) this.kept.replace([next, end, 'may']);",
    '',
  ),
  mutant(
    'a batch: the next run asks for what earlier ones may have begun',
    describe,
    'while (cursor < bound) {',
    'while (cursor < 0) {',
  ),
  mutant(
    'a batch: what is older than the retention may be forgotten',
    describe,
    'if (Date.now() - since >= retentionMs)',
    'if (retentionMs < 0)',
  ),
];
