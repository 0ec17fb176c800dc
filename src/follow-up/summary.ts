import { formatDuration } from '../core/units';
import { lastResponseText, reportedDelivery } from './receipt';
import type { FollowUpState } from './state';
import type { Step } from './step';

/** The summary of the timer before a step, for the Web UI: the latest response, and when the next request follows. */
export function waitSummary(state: FollowUpState, step: Step & { at: number }, now: number): string {
  const response = lastResponseText(state) ?? 'no response yet';
  const wait = formatDuration(step.at - now);
  switch (step.phase) {
    case 'needs-decision':
      return `did the message arrive? resolveDelivery decides; next read in ${wait}`;
    case 'reconciling':
      return `${response}; did the message arrive? next read in ${wait}`;
    case 'waiting-for-job':
      return `waiting for the job: ${response}, next read in ${wait}`;
    default:
      if (step.do === 'send') return `${response}; ${sentSoFar(state)}; next try in ${wait}`;
      return `${state.polls === 0 ? 'sent' : `poll ${state.polls}`}: ${response}, next read in ${wait}`;
  }
}

function sentSoFar(state: FollowUpState): string {
  const { verdict, sends } = reportedDelivery(state);
  if (verdict !== 'not-sent') return `delivery ${verdict}`;
  return sends === 0 ? 'nothing sent yet' : 'nothing processed yet';
}

/** The summary of an activity, for the Web UI. */
export function activitySummary({ polls, sends, waitingForJob }: FollowUpState, step: Step): string {
  switch (step.do) {
    case 'send':
      return `read the job, then send the message${sends === 0 ? '' : ` (POST ${sends + 1})`}`;
    case 'poll':
      return `poll ${polls + 1} and later ones, until ${step.known.status} changes`;
    default:
      return waitingForJob === null ? `poll ${polls + 1}` : 'read the job until it is idle';
  }
}
