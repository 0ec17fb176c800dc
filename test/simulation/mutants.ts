import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { MUTANTS_OF_BATCHES } from './batch/mutants';

/* npm run mutants: takes out each rule, one after the other, and tells which seed notices it. */

/** A rule that docs/guarantees.md promises, and how it is taken out of a file of src: the text stands in it once. */
export interface Mutant {
  readonly rule: string;
  readonly file: string;
  readonly text: string;
  readonly instead: string;
  /** Which worlds are played. */
  readonly of: keyof typeof MOST;
}

const send = 'activities/send-message.ts';
const attempt = 'activities/attempt.ts';
const outcome = 'agent-api/outcome.ts';
const api = 'agent-api/client.ts';
const cooldowns = 'agent-api/cooldowns.ts';
const evidence = 'core/evidence.ts';
const tally = 'core/tally.ts';
const cadence = 'core/cadence.ts';
const proxies = 'workflows/activity-proxies.ts';
const deliver = 'workflows/follow-up/deliver.ts';
const sends = 'workflows/follow-up/send.ts';
const afterSend = 'workflows/follow-up/after-send.ts';
const watch = 'workflows/follow-up/watch.ts';
const polls = 'workflows/follow-up/poll.ts';
const context = 'workflows/follow-up/context.ts';
const operator = 'workflows/follow-up/operator.ts';
const state = 'workflows/follow-up/state.ts';
const followUp = 'workflows/follow-up/follow-up.ts';

function mutant(rule: string, file: string, text: string, instead: string): Mutant {
  return { rule, file, text, instead, of: 'seeds' };
}

const MUTANTS: readonly Mutant[] = [
  mutant(
    'no words of the service permit another POST',
    outcome,
    '  const proof = proofOfStatus(exchange.status);',
    "  const words = read.trouble.serviceMessage ?? '';\n  const proof = words.includes('being processed') ? 'not processed' : proofOfStatus(exchange.status);",
  ),
  mutant(
    'an attempt that finds the details of an earlier one sends nothing',
    send,
    'if (earlier) return',
    'if (earlier && false) return',
  ),
  mutant(
    'a run made by a reset sends nothing',
    send,
    'if (ownRun().runId !== input.permittedRunId) {',
    'if (ownRun().runId === "") {',
  ),
  mutant(
    'whenActive decides by the look right before the POST',
    send,
    "if (decideSend(job, input.whenActive, input.earlierBaseline) !== 'send')",
    'if (Date.now() < 0)',
  ),
  mutant(
    'no POST without a permission',
    send,
    'return singleLine(`the server did not confirm that the send is still wanted (${reason})`, 300);',
    'return () => reason.length + 1;',
  ),
  mutant(
    'a permission lasts ten seconds',
    send,
    "return permission() > 0 ? undefined : 'the worker stood still while it was connecting';",
    'return undefined;',
  ),
  mutant(
    'a suspended machine is noticed by the wall clock',
    attempt,
    'Math.max(Date.now() - askedAt, performance.now() - askedTick)',
    '(performance.now() - askedTick)',
  ),
  mutant('sentAt is the moment of the POST', send, '          checkpoint.sentAt = Date.now();\n', ''),
  mutant(
    'a POST that has begun and has no answer is unknown',
    outcome,
    "if (started) return { verdict: 'unknown' };",
    "if (started) return { verdict: 'not-sent', repeatable: true };",
  ),
  mutant(
    'what a failed request proves by its code',
    outcome,
    'if (started) return',
    "if (started && facts.some(({ label }) => label === 'timeout')) return",
  ),
  mutant(
    'a 5xx on the POST proves nothing',
    outcome,
    'const REJECTED: ReadonlySet<number> = new Set([400,',
    'const REJECTED: ReadonlySet<number> = new Set([500, 502, 503, 504, 400,',
  ),
  mutant(
    'a 408 on the POST proves nothing',
    outcome,
    'const REJECTED: ReadonlySet<number> = new Set([400,',
    'const REJECTED: ReadonlySet<number> = new Set([408, 425, 400,',
  ),
  mutant(
    'a 429 on the POST is waited out, and not a rejection',
    outcome,
    "return status === 429 ? 'not processed' : 'unknown';",
    "return status === 429 || status >= 500 ? 'not processed' : 'unknown';",
  ),
  mutant(
    'only a job of this id is an answer',
    outcome,
    'return job?.id === jobId ? { job }',
    'return job !== undefined ? { job }',
  ),
  mutant(
    'a POST is not repeated for a page',
    outcome,
    "if ('job' in read) return { verdict: 'accepted', job: read.job };",
    "if ('job' in read) return { verdict: 'accepted', job: read.job };\n  if (exchange.status === 200) return { verdict: 'rejected', ...read.trouble };",
  ),
  mutant(
    'the connection is asked once more before the first byte',
    api,
    'const limits = { ...limitsOf(ownTimeoutMs), beforeFirstByte };',
    'const limits = { ...limitsOf(ownTimeoutMs), ...(beforeFirstByte && {}) };',
  ),
  mutant(
    'only a JSON object is the word of the service about a job or a key',
    'agent-api/trouble.ts',
    '&& !isObject(answer.body)) {',
    "&& answer.body.kind === 'other' && !isObject(answer.body)) {",
  ),
  mutant(
    'a refused POST says nothing of reads',
    cooldowns,
    "operation === 'send' ? this.cooldowns.get(`send ${projectId}`) : undefined",
    'this.cooldowns.get(`send ${projectId}`)',
  ),
  mutant(
    'what somebody asks for is read while the project cools down',
    api,
    'insist ? null : cooldowns',
    'insist && false ? null : cooldowns',
  ),
  mutant(
    'the last read is made while the project cools down',
    context,
    'this.isWanted || Date.now() >= this.state.deadlineAt;',
    'this.isWanted;',
  ),
  mutant(
    'only active shows a turn',
    evidence,
    'if (!isTerminal(job.status)) return job.status === ACTIVE;',
    'if (!isTerminal(job.status)) return true;',
  ),
  mutant(
    'only a fresh answer counts',
    evidence,
    'if (askedAt < observations.freshFrom) return',
    'if (askedAt < 0) return',
  ),
  mutant(
    'freshness counts from the end of the POST',
    evidence,
    'if (askedAt < observations.freshFrom) return',
    'if (receivedAt < observations.freshFrom) return',
  ),
  mutant(
    'a turn that was seen proves nothing if the job was active before',
    evidence,
    'if (baseline !== null && isTerminal(baseline.status)) {\n    if (seenActive)',
    'if (baseline !== null) {\n    if (seenActive)',
  ),
  mutant(
    'archived shows no end of a turn',
    evidence,
    'if (job.status !== baseline.status && endsTurn(job.status))',
    'if (job.status !== baseline.status)',
  ),
  mutant(
    'a status that nothing shows to be new must hold',
    evidence,
    "if (answers < 2 || askedAt < until) return { kind: 'doubted', until };",
    "if (answers < 1) return { kind: 'doubted', until };",
  ),
  mutant(
    'another status starts the hold anew',
    evidence,
    'observations.fresh?.job.status === job.status ? observations.fresh : null',
    'observations.fresh',
  ),
  mutant(
    'the hold counts from when its first answer was received',
    evidence,
    'const since = before?.since ?? receivedAt;',
    'const since = before?.since ?? askedAt;',
  ),
  mutant(
    'a job that was active before proves no delivery',
    evidence,
    'if (baseline === null || !isTerminal(baseline.status)) return false;',
    'if (baseline === null) return false;',
  ),
  mutant(
    'what archiving changes proves no delivery',
    evidence,
    'return job.status !== baseline.status && endsTurn(job.status) && endsTurn(baseline.status);',
    'return job.status !== baseline.status;',
  ),
  mutant('five 404s are needed', tally, 'const MIN_NOT_FOUND = 5;', 'const MIN_NOT_FOUND = 1;'),
  mutant('404s must span confirm', tally, '&& askedAt - notFound.since >= confirmMs', ''),
  mutant(
    'an answer ends a row of 404s',
    tally,
    "if (answer.kind === 'job') return NO_TROUBLE;",
    "if (answer.kind === 'job') return { ...trouble, last: null };",
  ),
  mutant(
    'a Retry-After of nothing is a second',
    cadence,
    'const MIN_RETRY_AFTER_MS = 1_000;',
    'const MIN_RETRY_AFTER_MS = 0;',
  ),
  mutant(
    'a Retry-After is waited out',
    cadence,
    'if (last.retryAfterMs !== undefined)',
    'if (last.retryAfterMs === -1)',
  ),
  mutant('the link is waited for', watch, 'return fresh.askedAt >= endsAt ? null : endsAt;', 'return null;'),
  mutant(
    'there is a last read at the deadline',
    watch,
    "return lastAskedAt >= deadlineAt ? { kind: 'overdue' } : read('watching', 0);",
    "return { kind: 'overdue' };",
  ),
  mutant(
    'a watch ends by its deadline',
    watch,
    'if (now >= deadlineAt) return lastAskedAt',
    'if (now >= deadlineAt + 3_600_000) return lastAskedAt',
  ),
  mutant(
    'a wait for a job at rest ends by its deadline',
    watch,
    '    refuseAfterDeadline(context);\n    const waitMs = nextWait(plan.polling, Date.now() - since',
    '    const waitMs = nextWait(plan.polling, Date.now() - since',
  ),
  mutant(
    'a run continues as new only when no handler waits',
    context,
    '      allHandlersFinished()\n',
    '      Boolean(allHandlersFinished)\n',
  ),
  mutant(
    'a run does not continue as new in a task that takes an update or gives up an activity',
    context,
    'historyLength > Math.max(this.updatedAt, this.gaveUpAt) &&',
    '',
  ),
  mutant(
    'a run does not end in a task in which it gives up an activity',
    context,
    'if (workflowInfo().historyLength <= this.gaveUpAt) await sleep(1);',
    'if (workflowInfo().historyLength < 0) await sleep(1);',
  ),
  mutant(
    'a run that continues as new keeps its evidence',
    watch,
    '{ continued: state });',
    '{ continued: { ...state, watch: { ...watch, observations: { ...watch.observations, freshFrom: 0 } } } });',
  ),
  mutant('resend is allowed once', deliver, 'if (state.resent) throw unknown();\n', ''),
  mutant(
    'resend is allowed for the first run',
    deliver,
    'return workflowInfo().firstExecutionRunId;',
    'return workflowInfo().runId;',
  ),
  mutant(
    'a refused second POST leaves the first one unknown',
    afterSend,
    "const type = told(state).verdict === 'unknown' ? 'DeliveryUnknown' : 'FollowUpRejected';",
    "const type = 'FollowUpRejected';",
  ),
  mutant(
    'reconciling lasts until there was a fresh answer',
    deliver,
    'if (fresh !== null && now >= until) return false;',
    'if (now >= until) return false;',
  ),
  mutant(
    'nothing is assumed unless the caller allows it',
    deliver,
    "    case 'fail':\n      throw unknown();\n    case 'assume-delivered':",
    "    case 'fail':\n    case 'assume-delivered':",
  ),
  mutant('reject ends it', afterSend, "if (decision !== 'reject') return", "if (decision !== 'send') return"),
  mutant(
    'nothing is tried after the deadline',
    deliver,
    '    refuseAfterDeadline(context);\n    const askedAt = Date.now();',
    '    const askedAt = Date.now();',
  ),
  mutant(
    'a run made by a reset waits until the POST of the run before is over',
    afterSend,
    'const freshFrom = now + SEND_PERMISSION_MS + (settings?.httpTimeoutMs ?? 0) + plan.confirmMs;',
    'const freshFrom = now + 0 * SEND_PERMISSION_MS * (settings?.httpTimeoutMs ?? 0) + plan.confirmMs;',
  ),
  mutant(
    'a run made by a reset that has the POST in its history presumes no other',
    state,
    "if (!isReset || delivery.verdict !== 'not-sent') return delivery;",
    'if (!isReset) return delivery;',
  ),
  mutant(
    'once the job was read, trouble with a look is a delay',
    afterSend,
    "if (state.job !== null || told(state).verdict === 'unknown') {",
    'if (state.job === undefined) {',
  ),
  mutant(
    'an operator is asked where the caller wants it',
    deliver,
    'state.doubt = doubt;\n      return askOperator(context, watch);',
    'throw unknown();',
  ),
  mutant(
    'a delivery is assumed where the caller wants it',
    deliver,
    "state.delivery = confirmed(state.delivery, 'assumed');\n      return null;",
    'throw unknown();',
  ),
  mutant(
    'a Retry-After of a day is an hour',
    cadence,
    'const MAX_RETRY_AFTER_MS = 3_600_000;',
    'const MAX_RETRY_AFTER_MS = 86_400_000;',
  ),
  mutant(
    'a run made by a reset says unknown',
    state,
    "if (!isReset || delivery.verdict !== 'not-sent') return delivery;",
    "if (!isReset || delivery.verdict === 'not-sent') return delivery;",
  ),
  mutant(
    'a run that may not send says unknown',
    afterSend,
    "state.delivery = { ...state.delivery, verdict: 'unknown', sends: state.delivery.sends + 1 };",
    'state.delivery = { ...state.delivery };',
  ),
  mutant(
    'a cancel asks for the checkpoint first',
    sends,
    'const before = activity.end === undefined ? await askAfter(context) : null;',
    'const before: SendCheckpoint | null = null;',
  ),
  mutant(
    'a lost send with a checkpoint is unknown',
    sends,
    'return isSendCheckpoint(details) ? details : unknownCheckpoint();',
    'return null;',
  ),
  mutant(
    'a lost send without a checkpoint is not',
    sends,
    'if (details === null || details === undefined) return null;',
    'if (details === undefined) return null;',
  ),
  mutant(
    'a send that fails around its activity was not made',
    proxies,
    'retry: { initialInterval: 5_000, backoffCoefficient: 1 },\n    cancellationType: ActivityCancellationType.WAIT',
    'retry: { maximumAttempts: 1 },\n    cancellationType: ActivityCancellationType.WAIT',
  ),
  mutant(
    'a send ends at the deadline',
    sends,
    'if (leftMs <= 0) return;',
    'if (leftMs <= -3_600_000) return;',
  ),
  mutant(
    'before an answer is fresh, a read is made only for the turn',
    evidence,
    'return mayShowTurn ? 0 : freshFrom;',
    'return mayShowTurn ? 0 : 0 * freshFrom;',
  ),
  mutant(
    'sentAt lies between the start of the send and now',
    afterSend,
    'Math.max(askedAt, Math.min(sentAt, endedAt))',
    'sentAt',
  ),
  mutant(
    'freshness counts from when the workflow hears of the POST',
    afterSend,
    'newWatch(baseline, state.sentAt, endedAt + state.plan.confirmMs, state.watch)',
    'newWatch(baseline, state.sentAt, state.sentAt + state.plan.confirmMs, state.watch)',
  ),
  mutant(
    'a send that has begun is waited for',
    proxies,
    'cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,\n    priority',
    'cancellationType: ActivityCancellationType.ABANDON,\n    priority',
  ),
  mutant(
    'a send has no sign of life but its permission',
    proxies,
    'retry: { initialInterval: 5_000, backoffCoefficient: 1 },\n    cancellationType: ActivityCancellationType.WAIT',
    'retry: { initialInterval: 5_000, backoffCoefficient: 1 },\n    heartbeatTimeout: 5_000,\n    cancellationType: ActivityCancellationType.WAIT',
  ),
  mutant(
    'what a poll has counted is counted',
    polls,
    'if (tally !== null) count(context, watch, tally);',
    'if (tally === undefined) count(context, watch, tally);',
  ),
  mutant(
    'each read counts once',
    polls,
    '      else takeNoted(answer);\n      read = true;',
    '      else takeNoted(answer);\n      takeNoted(answer);\n      read = true;',
  ),
  mutant(
    'a poll ends when the job changes',
    tally,
    "if (answer.kind === 'job') return !sameState(answer.job, known);",
    "if (answer.kind === 'job') return false;",
  ),
  mutant('a lost read is an answer', context, '.catch((error: unknown) => answerOfLostRead(error)),', ','),
  mutant(
    'a wait ends at the deadline',
    context,
    'const until = Math.min(Date.now() + this.withinHistoryBudget(ms), this.state.deadlineAt);',
    'const until = Date.now() + this.withinHistoryBudget(ms);',
  ),
  mutant(
    'a decision is taken in needs-decision only',
    operator,
    "if (state.phase !== 'needs-decision')",
    "if (state.phase !== 'needs-decision' && state.phase !== 'reconciling')",
  ),
  mutant(
    'one of several decisions is taken',
    operator,
    'if (taken !== null) throw refused(`somebody',
    'if (taken !== null && false) throw refused(`somebody',
  ),
  mutant(
    'pollNow waits for a read',
    context,
    'await condition(() => this.over || (this.readsEnded > before',
    'await condition(() => this.over || (this.readsEnded >= before',
  ),
  mutant('a deadline is only moved', context, 'Math.max(this.state.deadlineAt, deadlineAt)', 'deadlineAt'),
  mutant(
    'a later POST takes no unknown delivery back',
    state,
    "const verdict = before.verdict === 'unknown' ? 'unknown' : outcome.verdict;",
    'const verdict = outcome.verdict;',
  ),
  mutant(
    'an answered 429 counts as a send',
    state,
    "outcome.verdict !== 'not-sent' || outcome.answered",
    "outcome.verdict !== 'not-sent'",
  ),
  mutant('a cancelled follow-up leaves its receipt', followUp, "phase === 'cancelled' || isItem", 'isItem'),
  mutant(
    'a list shows the phase',
    followUp,
    'context.enter(phase, outcome);',
    'context.enterBriefly(phase);',
  ),
];

/** By the option of `npm run simulate`. A mutant that survives them is a hole in what the simulation draws, or in its oracle. */
const MOST = { seeds: 10_000, batches: 2_000 } as const;

const ROOT = path.resolve(__dirname, '../..');

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { only: { type: 'string', default: '' }, most: { type: 'string' } },
  });
  const chosen = [...MUTANTS, ...MUTANTS_OF_BATCHES].filter(({ rule }) => rule.includes(values.only));
  let survivors = 0;
  const left = [...chosen.entries()];
  // One for each core: they share nothing.
  const playAll = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [index, each] = next;
      const end = await play(each, values.most ?? String(MOST[each.of]));
      if (!end.startsWith('seed')) survivors += 1;
      process.stdout.write(`${String(index + 1).padStart(2)}. ${each.rule}: ${end}\n`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, playAll));
  process.stdout.write(`${chosen.length} mutants, ${survivors} survived\n`);
  return survivors;
}

/** @returns which seed has found it, after how many worlds */
async function play({ file, text, instead, of }: Mutant, most: string): Promise<string> {
  const folder = await mkdtemp(path.join(ROOT, '.cache', 'mutant-'));
  try {
    for (const part of ['src', 'sandbox', 'test/simulation', 'package.json', 'tsconfig.json'])
      await cp(path.join(ROOT, part), path.join(folder, part), { recursive: true });
    await symlink(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
    const target = path.join(folder, 'src', file);
    const source = await readFile(target, 'utf8');
    if (source.split(text).length !== 2)
      return `its text stands ${source.split(text).length - 1} times in ${file}`;
    await writeFile(
      target,
      source.replace(text, () => instead),
    );
    return await simulated(folder, of, most);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function simulated(folder: string, of: string, most: string): Promise<string> {
  const program = path.join(ROOT, 'node_modules', 'tsx', 'dist', 'cli.mjs');
  const args = [program, 'test/simulation/main.ts', `--${of}`, `1..${most}`, '--until-lie'];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: folder, maxBuffer: 1e8 }, (error, stdout, stderr) => {
      const found = stdout.split('\n').find((line) => line.startsWith('seed'));
      const broken = error === null ? 'survives' : `can't be played: ${stderr.trim().slice(-300)}`;
      resolve(found ?? broken);
    });
  });
}

void main().then((survivors) => {
  process.exitCode = survivors > 0 ? 1 : 0;
});
