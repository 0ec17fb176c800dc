import type { FollowUpWorld } from './follow-up-world';
import { wasNotProcessed } from './oracle/case';
import type { PlannedLock } from './plan';
import type { Situations } from './simulate';
import type { Run } from './temporal/run';
import type { LogEntry } from './world';

/**
 * What people and machines do, and when: a deed as `kill at POINT` or `kill in PHASE`, or several that come one after the
 * other. In `watch` are the phases between a delivery and the end.
 */
const OPERATION_SITUATIONS: Readonly<Record<string, string>> = {
  'killed while it looks at the job': 'kill at look (asked|begun|reached)',
  'killed with the job read, before it asks for permission': 'kill at (look heard|permission asked)',
  'killed between the permission and the POST': 'kill at (permission recorded|post asked)',
  'killed with the POST under way': 'kill at post (begun|reached)',
  'killed with the message processed': 'kill at post processed',
  'killed with the answer not reported': 'kill at (post heard|sendMessage over)',
  'killed between two polls': 'kill at (task done|pollJob reported|getJob reported)” in (watch)',
  'killed in a poll': 'kill at (read|poll) (asked|begun|reached|heard)',
  'killed while it settles': 'kill in waiting-for-link',
  'killed while a decision is awaited': 'kill in needs-decision',
  'killed while it waits for the job lock': 'kill in waiting-for-job',
  'killed while it releases the job lock': 'kill at (releaseJobLock started|terminate recorded)',
  'cancelled while it waits for the job lock or an idle job': 'cancel in waiting-for-job',
  'killed in a workflow task':
    'kill at (task started|countPollReads started|stopSend started|describe asked)',
  'frozen before it asks for permission': 'freeze at (look heard|permission asked)',
  'frozen with the permission on its way': 'freeze at permission recorded',
  'frozen while it connects': 'freeze at post asked',
  'frozen after its POST': 'freeze at (post processed|post heard|sendMessage over)',
  'frozen in a poll': 'freeze at poll',
  'told to end with a POST under way': 'stop at post (begun|reached|processed)',
  'the answer to the permission is lost': 'lose answer at (look heard|sendMessage started)',
  'a report is lost': 'lose (request|answer) at (post heard|getJob over|sendMessage over|read heard)',
  'the server is away with a POST under way': 'server unavailable at (post|permission)',
  'the server is away in the watch': 'server unavailable in (watch)',
  'a send waits behind a limit': 'hold queue at (started|task started|workerSettings started|phase sending)',
  'the wall clock of a worker is wrong': 'wrong clock',
  'a send may have no other attempt, and its worker dies with the POST under way':
    'limit attempts, then kill at (post|sendMessage over|permission recorded)',
  'a send has no worker that knows it, or its input breaks': 'break input at sendMessage started',
  'the result of a send breaks': 'break result at (post|sendMessage)',
  'a send is reset, and its worker dies': 'send reset, then kill at (look|permission|post|sendMessage)',
  'a send is paused with its POST under way': 'pause send at (post|permission recorded)',
  'a send is paused while it looks at the job': 'pause send at (sendMessage started|look asked|look reached)',
  'a send is cancelled between two attempts': 'cancel .*“sendMessage backs off',
  'a paused send is cancelled': 'cancel .* with a paused send',
  'a send is cancelled while it is given up at the deadline': 'cancel at stopSend started',
  'a send is completed by hand': 'complete by hand in (none|starting|sending)',
  'a poll is completed by hand': 'complete by hand in (watch|needs-decision)',
  'a poll reports in the task that gives it up': 'complete by hand at countPollReads started” in needs',
  'a signal comes in a task that takes an update': 'signal at extendDeadline started',
  'cancelled before the send': 'cancel in (none|starting)',
  'cancelled with the POST under way': 'cancel at (permission recorded|post)',
  'cancelled while it reconciles': 'cancel in reconciling',
  'cancelled while a decision is awaited': 'cancel in needs-decision',
  'cancelled in the watch': 'cancel in (watch)',
  'cancelled, and its worker dies': 'cancel, then kill',
  terminated: 'terminate',
  'reset before the send': 'reset in (none|starting)',
  'reset with the POST under way': 'reset at (permission recorded|post)',
  'reset while it reconciles': 'reset in reconciling',
  'reset while a decision is awaited': 'reset in needs-decision',
  'reset in the watch': 'reset in (watch)',
  'reset after its end': 'reset in its end',
  'reset twice': 'reset, then reset',
  'decided not-delivered in a run made by a reset': 'reset, then decide not-delivered',
  'a decision in its time': 'decide in needs-decision',
  'a decision out of its time': 'decide in (watching|sending|reconciling)',
  'a decision with a read under way': 'decide at (read|getJob)',
  'polled on demand while the message is sent': 'poll now in sending',
  'polled on demand in the watch': 'poll now in (watch)',
  'the deadline is moved': 'extend in (watching|waiting-for-job|needs-decision|reconciling)',
  'others begin a turn between the look and the POST':
    'turn by another client at (look heard|permission|post asked|post begun)',
  'others begin a turn after the POST': 'turn by another client in (watch|reconciling)',
  'the job is archived in the watch': 'change job archived in (watch)',
  'started again': 'start again',
};

const DECISION = operationPattern('decide in needs-decision');

/** What a follow-up goes through by itself. */
const FOLLOW_UP_SITUATIONS: Situations<FollowUpWorld> = {
  'waits for a job at rest': ({ log }) => log.some(({ what }) => what === 'phase waiting-for-job'),
  'another follow-up holds the job lock, and releases it': (world) => waitsForLock(world, 'released'),
  'the follow-up that holds the job lock ends without releasing it': (world) => waitsForLock(world, 'left'),
  "another client's workflow is in the place of the job lock": (world) => waitsForLock(world, 'foreign'),
  'the job lock is held until the deadline': (world) =>
    waitsForLock(world, 'never') && failsWith(world, 'DeadlineExceeded'),
  'the key is refused before the send, and the message is sent later': ({ service: { requests } }) => {
    const refused = requests.findIndex(({ point, answer }) => point === 'look' && answer === 'http_401');
    return refused >= 0 && requests.slice(refused).some(({ processedAt }) => processedAt !== null);
  },
  'a 401 or a 403 with Retry-After on the POST': ({ service }) =>
    service.requests.some(
      (post) => post.point === 'post' && wasNotProcessed(post) && post.answer !== 'http_429',
    ),
  'started with a delay': ({ plan }) => plan.startDelayMs > 0,
  'a waiting send is paused by its own follow-up': ({ log }) =>
    log.some(({ what }) => what === 'pause recorded'),
  'continues as new': ({ runs }) => runs.some(({ start }) => start.continuedFromRunId !== undefined),
  'an update comes with the suggestion to continue as new': ({ runs }) =>
    runs.some(
      (run) =>
        continuesAsNew(run) && run.events.some(({ type }) => type === 'WorkflowExecutionUpdateAccepted'),
    ),
  'the key is refused in the watch': ({ log }) => log.some(({ what }) => what === 'phase unauthorized'),
  'an unknown delivery is proved by reading': ({ runs }) =>
    runs.some(({ end }) => Buffer.from(end.result?.data ?? []).includes('"confirmedBy":"read"')),
  'sent once more by resend or a decision': ({ service }) =>
    service.requests.filter(
      ({ point, firstByteAt, answer }) => point === 'post' && firstByteAt !== null && answer !== 'http_429',
    ).length > 1,
  'two decisions at once': ({ log }) => {
    const decisions = log.filter(({ what }) => DECISION.test(what));
    return decisions.some(({ at }, index) => decisions[index + 1]?.at === at);
  },
  'a 429 on the POST': ({ service }) =>
    service.requests.some(({ point, answer }) => point === 'post' && answer === 'http_429'),
  'a gateway answers a read in place of the service': ({ service }) =>
    service.requests.some(({ answer }) => /^page_40[0134]$/.test(answer ?? '')),
  'the deadline ends it': (world) => failsWith(world, 'DeadlineExceeded'),
  'the job is lost': (world) => failsWith(world, 'JobNotFound'),
  'an update that is refused leaves no trace': ({ performed }) =>
    performed.some(({ answer }) => answer?.kind === 'refused'),
  'the server takes a task back': ({ runs }) => runs.some(({ failedTasks }) => failedTasks.length > 0),
};

/** The situations that docs/guarantees.md names, and how a world shows that it has met one. */
export const SITUATIONS: Situations<FollowUpWorld> = {
  ...Object.fromEntries(
    Object.entries(OPERATION_SITUATIONS).map(([name, words]) => {
      const patterns = words.split(', then ').map(operationPattern);
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

function operationPattern(words: string): RegExp {
  const where = words.replace(' at ', ' .*at “').replace(' in ', ' .*in phase ');
  return new RegExp(`^${where.replace(/watch(?!ing)/, 'watching|confirming|waiting-for-link')}`);
}

function occurInOrder(log: readonly LogEntry[], patterns: readonly RegExp[]): boolean {
  let next = 0;
  for (const { who, what } of log) if (who === 'operation' && patterns[next]?.test(what)) next += 1;
  return next === patterns.length;
}
