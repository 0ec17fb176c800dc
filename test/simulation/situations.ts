import type { FollowUpWorld } from './follow-up-world';
import { wasNotProcessed } from './oracle/case';
import type { PlannedLock } from './plan';
import type { Situations } from './simulate';
import type { Run } from './temporal/run';
import type { LogEntry } from './world';

/**
 * Situations that operations cause. The value is a pattern of the event log: `kill at POINT`, `kill in PHASE`, or several operations in this
 * order, joined with `, then `. `watch` means the phases between the delivery and the end.
 */
const OPERATION_SITUATIONS: Readonly<Record<string, string>> = {
  'a worker is killed during the baseline read': 'kill at baseline (requested|started|reached)',
  'a worker is killed after the baseline read, before it requests the send permission':
    'kill at (baseline received|permission requested)',
  'a worker is killed between the send permission and the POST':
    'kill at (permission recorded|post requested)',
  'a worker is killed during the POST': 'kill at post (started|reached)',
  'a worker is killed after the agent service processed the message': 'kill at post processed',
  'a worker is killed after it received the response to the POST, before it reports':
    'kill at (post received|sendMessage ended)',
  'a worker is killed between two polls': 'kill at (task done|pollJob reported|getJob reported)” in (watch)',
  'a worker is killed during a poll': 'kill at (read|poll) (requested|started|reached|received)',
  'a worker is killed while the follow-up waits for the link': 'kill in waiting-for-link',
  'a worker is killed while the follow-up needs a decision': 'kill in needs-decision',
  'a worker is killed while the follow-up waits for the job lock or an idle job': 'kill in waiting-for-job',
  'a worker is killed while it releases the job lock': 'kill at (releaseJobLock started|terminate recorded)',
  'a follow-up is cancelled while it waits for the job lock or an idle job': 'cancel in waiting-for-job',
  'a worker is killed during a workflow task':
    'kill at (task started|countPollReads started|stopSend started|describe requested)',
  'a worker is frozen before it requests the send permission':
    'freeze at (baseline received|permission requested)',
  'a worker is frozen before it receives the send permission': 'freeze at permission recorded',
  'a worker is frozen while it connects to the agent service': 'freeze at post requested',
  'a worker is frozen after the agent service processed the message':
    'freeze at (post processed|post received|sendMessage ended)',
  'a worker is frozen during a poll': 'freeze at poll',
  'a worker is shut down during the POST': 'stop at post (started|reached|processed)',
  'the response to the request for the send permission is lost':
    'lose response at (baseline received|sendMessage started)',
  'the report of an activity is lost':
    'lose (request|response) at (post received|getJob ended|sendMessage ended|read received)',
  'the Temporal server is unavailable during the POST': 'server unavailable at (post|permission)',
  'the Temporal server is unavailable during the watch': 'server unavailable in (watch)',
  'a rate limit holds a task queue before or during the send':
    'hold queue at (started|task started|workerSettings started|phase sending)',
  'the wall clock of a worker is wrong': 'wrong clock',
  'a send is limited to one attempt, and its worker dies during the POST':
    'limit attempts, then kill at (post|sendMessage ended|permission recorded)',
  'the input of a send cannot be decoded': 'break input at sendMessage started',
  'the result of a send cannot be encoded': 'break result at (post|sendMessage)',
  'the send activity is reset, and its worker dies':
    'send reset, then kill at (baseline|permission|post|sendMessage)',
  'a send is paused during its POST': 'pause send at (post|permission recorded)',
  'a send is paused before or during its baseline read':
    'pause send at (sendMessage started|baseline requested|baseline reached)',
  'a send is cancelled between two attempts': 'cancel .*“sendMessage backs off',
  'a paused send is cancelled': 'cancel .* with a paused send',
  'a follow-up is cancelled while it stops its send': 'cancel at stopSend started',
  'another client completes the send activity': 'complete by hand in (none|starting|sending)',
  'another client completes a read or a poll': 'complete by hand in (watch|needs-decision)',
  'another client completes a poll in the workflow task that stops the poll':
    'complete by hand at countPollReads started” in needs',
  'a signal arrives in a workflow task that handles an update': 'signal at extendDeadline started',
  'a follow-up is cancelled before the send has ended': 'cancel in (none|starting)',
  'a follow-up is cancelled during the POST': 'cancel at (permission recorded|post)',
  'a follow-up is cancelled while it reconciles': 'cancel in reconciling',
  'a follow-up is cancelled while it needs a decision': 'cancel in needs-decision',
  'a follow-up is cancelled during the watch': 'cancel in (watch)',
  'a follow-up is cancelled, and a worker dies': 'cancel, then kill',
  'a follow-up is terminated': 'terminate',
  'a follow-up is reset before the send has ended': 'reset in (none|starting)',
  'a follow-up is reset during the POST': 'reset at (permission recorded|post)',
  'a follow-up is reset while it reconciles': 'reset in reconciling',
  'a follow-up is reset while it needs a decision': 'reset in needs-decision',
  'a follow-up is reset during the watch': 'reset in (watch)',
  'a follow-up is reset after its end': 'reset in its end',
  'a follow-up is reset twice': 'reset, then reset',
  'an operator decides not-delivered in a run that a reset made': 'reset, then decide not-delivered',
  'an operator decides while the follow-up needs a decision': 'decide in needs-decision',
  'an operator decides while the follow-up does not need a decision':
    'decide in (watching|sending|reconciling)',
  'an operator decides during a read': 'decide at (read|getJob)',
  'a caller requests a read during the send': 'poll now in sending',
  'a caller requests a read during the watch': 'poll now in (watch)',
  'a caller extends the deadline': 'extend in (watching|waiting-for-job|needs-decision|reconciling)',
  'another client starts a turn between the baseline read and the POST':
    'turn by another client at (baseline received|permission|post requested|post started)',
  'another client starts a turn after the POST': 'turn by another client in (watch|reconciling)',
  'the job is archived during the watch': 'change job archived in (watch)',
  'a follow-up is started again': 'start again',
};

const DECISION = operationPattern('decide in needs-decision');

/** Situations that other parts of the plan cause. */
const FOLLOW_UP_SITUATIONS: Situations<FollowUpWorld> = {
  'a follow-up waits for the job lock or an idle job': ({ log }) =>
    log.some(({ what }) => what === 'phase waiting-for-job'),
  'another follow-up holds the job lock and releases it': (world) => waitsForLock(world, 'released'),
  'the follow-up that holds the job lock ends without a release': (world) => waitsForLock(world, 'left'),
  "another client's workflow has the ID of the job lock": (world) => waitsForLock(world, 'foreign'),
  'the job lock is held until the deadline': (world) =>
    waitsForLock(world, 'never') && failsWith(world, 'DeadlineExceeded'),
  'the API key is rejected before the send, and the message is sent later': ({ service: { requests } }) => {
    const rejected = requests.findIndex(({ point, answer }) => point === 'baseline' && answer === 'http_401');
    return rejected >= 0 && requests.slice(rejected).some(({ processedAt }) => processedAt !== null);
  },
  'the first read receives 403 with Retry-After, and the message is sent later': ({
    service: { requests },
  }) => {
    const [first] = requests;
    const isLimited = first?.answer === 'http_403' && wasNotProcessed(first);
    return isLimited && requests.some(({ processedAt }) => processedAt !== null);
  },
  'a POST receives 401, or 403 with Retry-After': ({ service }) =>
    service.requests.some(
      (post) => post.point === 'post' && wasNotProcessed(post) && post.answer !== 'http_429',
    ),
  'a follow-up has a start delay': ({ plan }) => plan.startDelayMs > 0,
  'a follow-up pauses its own send that is waiting': ({ log }) =>
    log.some(({ what }) => what === 'pause recorded'),
  'a follow-up continues as new': ({ runs }) =>
    runs.some(({ start }) => start.continuedFromRunId !== undefined),
  'a run that continues as new has accepted an update': ({ runs }) =>
    runs.some(
      (run) =>
        continuesAsNew(run) && run.events.some(({ type }) => type === 'WorkflowExecutionUpdateAccepted'),
    ),
  'a follow-up is in the phase unauthorized': ({ log }) =>
    log.some(({ what }) => what === 'phase unauthorized'),
  'reads show that a message of unknown delivery arrived': ({ runs }) =>
    runs.some(({ end }) => Buffer.from(end.result?.data ?? []).includes('"confirmedBy":"read"')),
  'a second POST is made after resend or a decision': ({ service }) =>
    service.requests.filter(
      ({ point, firstByteAt, answer }) => point === 'post' && firstByteAt !== null && answer !== 'http_429',
    ).length > 1,
  'two decisions are made at the same time': ({ log }) => {
    const decisions = log.filter(({ what }) => DECISION.test(what));
    return decisions.some(({ at }, index) => decisions[index + 1]?.at === at);
  },
  'a POST receives 429': ({ service }) =>
    service.requests.some(({ point, answer }) => point === 'post' && answer === 'http_429'),
  'a gateway responds to a request instead of the agent service': ({ service }) =>
    service.requests.some(({ answer }) => /^page_40[0134]$/.test(answer ?? '')),
  'the deadline ends a follow-up': (world) => failsWith(world, 'DeadlineExceeded'),
  'the job no longer exists': (world) => failsWith(world, 'JobNotFound'),
  'an update is rejected': ({ performed }) => performed.some(({ answer }) => answer?.kind === 'rejected'),
  'the Temporal server rejects a workflow task': ({ runs }) =>
    runs.some(({ failedTasks }) => failedTasks.length > 0),
};

/** The situations of worlds with one follow-up. */
export const SITUATIONS: Situations<FollowUpWorld> = {
  ...Object.fromEntries(
    Object.entries(OPERATION_SITUATIONS).map(([name, operations]) => {
      const patterns = operations.split(', then ').map(operationPattern);
      return [name, ({ log }: FollowUpWorld) => occurInOrder(log, patterns)];
    }),
  ),
  ...FOLLOW_UP_SITUATIONS,
};

export function failsWith({ runs }: { readonly runs: readonly Run[] }, type: string): boolean {
  return runs.some(({ end }) => end.failure?.applicationFailureInfo?.type === type);
}

function waitsForLock({ plan, log }: FollowUpWorld, end: PlannedLock['end']): boolean {
  return plan.lock?.end === end && log.some(({ what }) => what === 'waitForJobLock started');
}

function continuesAsNew({ status }: Run): boolean {
  return status === 'WorkflowExecutionContinuedAsNew';
}

function operationPattern(operation: string): RegExp {
  const where = operation.replace(' at ', ' .*at “').replace(' in ', ' .*in phase ');
  return new RegExp(`^${where.replace(/watch(?!ing)/, 'watching|confirming|waiting-for-link')}`);
}

function occurInOrder(log: readonly LogEntry[], patterns: readonly RegExp[]): boolean {
  let next = 0;
  for (const { who, what } of log) if (who === 'operation' && patterns[next]?.test(what)) next += 1;
  return next === patterns.length;
}
