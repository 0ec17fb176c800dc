import type { Facts } from './world';

/** Deeds of a world in their order, each as `kind at “point” in phase P`. */
type Deeds = readonly string[];

/**
 * The situations that docs/guarantees.md names, and how a world shows that it has met one: a pattern that a deed fits, or
 * several that deeds fit one after the other.
 */
const SITUATIONS: Readonly<Record<string, RegExp | readonly RegExp[]>> = {
  'killed while it looks at the job': /^kill at “look (asked|begun|reached)”/,
  'killed with the job read, before it asks for permission': /^kill at “(look heard|permission asked)”/,
  'killed between the permission and the POST': /^kill at “(permission recorded|post asked)”/,
  'killed with the POST under way': /^kill at “post (begun|reached)”/,
  'killed with the message processed': /^kill at “post processed”/,
  'killed with the answer not reported': /^kill at “(post heard|sendMessage over)”/,
  'killed between two polls':
    /^kill at “(task done|fail recorded|getJob reported)” in phase (watching|confirming)/,
  'killed in a poll': /^kill at “(read|poll) (asked|begun|reached|heard)”/,
  'killed while it settles': /^kill .* in phase settling/,
  'killed while a decision is awaited': /^kill .* in phase needs-decision/,
  'killed in a workflow task': /^kill at “(task started|pendingDetails started|describe asked)”/,
  'frozen before it asks for permission': /^freeze at “(look heard|permission asked)”/,
  'frozen with the permission on its way': /^freeze at “permission recorded”/,
  'frozen while it connects': /^freeze at “post asked”/,
  'frozen after its POST': /^freeze at “(post processed|post heard|sendMessage over)”/,
  'frozen in a poll': /^freeze at “poll/,
  'told to end with a POST under way': /^stop at “post (begun|reached|processed)”/,
  'the answer to the permission is lost': /^lose answer at “(look heard|sendMessage started)”/,
  'a report is lost': /^lose (request|answer) at “(post heard|getJob over|sendMessage over|read heard)”/,
  'the server is away with a POST under way': /^server away at “(post|permission)/,
  'the server is away in the watch': /^server away .* in phase (watching|confirming|settling)/,
  'a send waits behind a limit':
    /^hold queue at “(started|task started|workerSettings started|phase sending)”/,
  'the wall clock of a worker is wrong': /^wrong clock/,
  'a send may have no other attempt, and its worker dies with the POST under way': [
    /^limit attempts/,
    /^kill at “(post|sendMessage over|permission recorded)/,
  ],
  'a send has no worker that knows it, or its input breaks': /^break input at “sendMessage started”/,
  'the result of a send breaks': /^break result at “(post|sendMessage)/,
  'a send is reset, and its worker dies': [/^reset send/, /^kill at “(look|permission|post|sendMessage)/],
  'a send is paused with its POST under way': /^pause send at “(post|permission recorded)/,
  'a send is cancelled between two attempts': /^cancel (at|after) “sendMessage backs off”/,
  'a paused send is cancelled': /^cancel .* with a paused send/,
  'a send is completed by hand': /^complete by hand .* in phase (baseline|sending)/,
  'a poll is completed by hand':
    /^complete by hand .* in phase (watching|confirming|settling|needs-decision)/,
  'a poll reports in the task that gives it up':
    /^complete by hand at “pendingDetails started” in phase needs/,
  'a signal comes in a task that takes an update': /^signal at “extendDeadline started”/,
  'cancelled before the send': /^cancel .* in phase (none|baseline)/,
  'cancelled with the POST under way': /^cancel at “(permission recorded|post)/,
  'cancelled while it reconciles': /^cancel .* in phase reconciling/,
  'cancelled while a decision is awaited': /^cancel .* in phase needs-decision/,
  'cancelled in the watch': /^cancel .* in phase (watching|confirming|settling)/,
  'cancelled, and its worker dies': [/^cancel/, /^kill/],
  terminated: /^terminate/,
  'reset before the send': /^reset .* in phase (none|baseline)/,
  'reset with the POST under way': /^reset at “(permission recorded|post)/,
  'reset while it reconciles': /^reset .* in phase reconciling/,
  'reset while a decision is awaited': /^reset .* in phase needs-decision/,
  'reset in the watch': /^reset .* in phase (watching|confirming|settling)/,
  'reset after its end': /^reset .* in phase its end/,
  'reset twice': [/^reset (at|after)/, /^reset (at|after)/],
  'decided not-delivered in a run made by a reset': [/^reset (at|after)/, /^decide not-delivered/],
  'a decision in its time': /^decide .* in phase needs-decision/,
  'a decision out of its time': /^decide .* in phase (watching|sending|reconciling)/,
  'a decision with a read under way': /^decide .* at “(read|getJob)/,
  'polled on demand while the message is sent': /^poll now .* in phase sending/,
  'polled on demand in the watch': /^poll now .* in phase (watching|confirming|settling)/,
  'the deadline is moved': /^extend .* in phase (watching|waiting|needs-decision|reconciling)/,
  'others begin a turn between the look and the POST':
    /^turn of others at “(look heard|permission|post asked|post begun)/,
  'others begin a turn after the POST':
    /^turn of others .* in phase (watching|confirming|reconciling|settling)/,
  'the job is archived in the watch': /^change job to archived .* in phase (watching|confirming|settling)/,
  'started again': /^start again/,
};

const DECISION = /^decide .* in phase needs-decision/;

/** What a follow-up went through by itself. */
const BY_ITSELF: Readonly<Record<string, (facts: Facts) => boolean>> = {
  'waits for a job at rest': ({ log }) => log.some(({ what }) => what === 'phase waiting'),
  'continues as new': ({ runs }) => runs.some(({ status }) => status === 'WorkflowExecutionContinuedAsNew'),
  'an update comes with the suggestion to continue as new': ({ runs }) =>
    runs.some(
      ({ status, events }) =>
        status === 'WorkflowExecutionContinuedAsNew' &&
        events.some(({ type }) => type === 'WorkflowExecutionUpdateAccepted'),
    ),
  'the key is refused in the watch': ({ log }) => log.some(({ what }) => what === 'phase unauthorized'),
  'an unknown delivery is proved by reading': ({ runs }) =>
    runs.some(({ end }) => Buffer.from(end.result?.data ?? []).includes('"confirmedBy":"read"')),
  'sent once more by resend or a decision': ({ service }) =>
    service.requests.filter(
      ({ operation, begunAt, answer }) => operation === 'post' && begunAt !== null && answer !== 'http 429',
    ).length > 1,
  'two decisions at once': ({ log }) =>
    log.some(({ at, what }, index) => {
      const next = log.slice(index + 1).find((entry) => DECISION.test(entry.what));
      return DECISION.test(what) && next?.at === at;
    }),
  'a 429 on the POST': ({ service }) =>
    service.requests.some(({ operation, answer }) => operation === 'post' && answer === 'http 429'),
  'a gateway answers a read in place of the service': ({ service }) =>
    service.requests.some(({ answer }) => /^page 40[0134]$/.test(answer ?? '')),
  'the deadline ends it': ({ runs }) =>
    runs.some(({ end }) => end.failure?.applicationFailureInfo?.type === 'DeadlineExceeded'),
  'the job is lost': ({ runs }) =>
    runs.some(({ end }) => end.failure?.applicationFailureInfo?.type === 'JobNotFound'),
  'an update that is refused leaves no trace': ({ updates }) =>
    updates.some(({ end }) => end?.kind === 'refused'),
  'the server takes a task back': ({ runs }) => runs.some(({ failedTasks }) => failedTasks.length > 0),
};

/** The situations that a world has met. */
export function situationsOf(facts: Facts): string[] {
  const deeds: Deeds = facts.log.flatMap(({ who, what }) => (who === 'deed' ? [what] : []));
  const met = Object.entries(SITUATIONS).filter(([, patterns]) => fit(deeds, [patterns].flat()));
  const own = Object.entries(BY_ITSELF).filter(([, isMet]) => isMet(facts));
  return [...met, ...own].map(([name]) => name);
}

export const SITUATION_NAMES: readonly string[] = [...Object.keys(SITUATIONS), ...Object.keys(BY_ITSELF)];

function fit(deeds: Deeds, patterns: readonly RegExp[]): boolean {
  let from = 0;
  for (const pattern of patterns) {
    const index = deeds.findIndex((deed, nth) => nth >= from && pattern.test(deed));
    if (index < 0) return false;
    from = index + 1;
  }
  return true;
}
