import type { AgentJob } from '../src/core/job';
import {
  changingLink,
  flapArchived,
  lateLink,
  stale,
  unknownStatus,
  vanishingLink,
} from './fault-alterations';
import { choice, duration, integer, text } from './fault-parameters';
import { type Alter, type FaultRow, OPERATIONS } from './fault-row';

const BOTH = { operations: OPERATIONS, parameters: {} };

function alter(change: Alter['alter']): { effect: Alter } {
  return { effect: { kind: 'alter', alter: change } };
}

/** The faults of the answer itself: a good answer with a job that lags, changes its mind or is not what was asked for. */
export const JOB_FAULTS = {
  'another-job': {
    meaning: 'answers with a job of another id',
    ...BOTH,
    ...alter((job) => ({ ...job, id: `${job.id}-other` })),
  },
  // The type says more than is sent here: leaving fields out is what this fault is for.
  'bare-job': {
    meaning: 'answers with nothing but the id and the status of the job',
    ...BOTH,
    ...alter(({ id, status }) => ({ id, status }) as AgentJob),
  },
  'extra-fields': {
    meaning: 'answers with fields that the contract does not have',
    ...BOTH,
    ...alter((job) => ({ ...job, turns: [{ cost: 0.12 }], queue: null })),
  },
  'empty-link': {
    meaning: 'answers with an empty text where there is no link',
    ...BOTH,
    ...alter((job) => (job.prLink === null ? { ...job, prLink: '' } : job)),
  },
  stale: {
    meaning:
      'after a message, answers with the state of before for some time, or for so many answers (times=N)',
    operations: OPERATIONS,
    parameters: { for: duration('how long; unless given, 3s or as many answers as times says', null) },
    ...alter(stale),
  },
  'flap-archived': {
    meaning: 'a completed job is shown archived in every other answer',
    ...BOTH,
    ...alter(flapArchived),
  },
  'late-link': {
    meaning: 'prLink stays null for some time after the job has completed',
    operations: OPERATIONS,
    parameters: { for: duration('how long', '3s') },
    ...alter(lateLink),
  },
  'vanishing-link': {
    meaning: 'prLink is shown and then null again',
    operations: OPERATIONS,
    parameters: { shown: integer('how many answers show it', 1, 1_000, '1') },
    ...alter(vanishingLink),
  },
  'changing-link': {
    meaning: 'prLink is another one in every answer',
    ...BOTH,
    ...alter(changingLink),
  },
  'unknown-status': {
    meaning: 'answers with a status that nobody knows',
    operations: OPERATIONS,
    parameters: {
      word: text('the status', 'hibernating'),
      'instead-of': choice(
        'which status it replaces',
        ['any', 'active', 'completed', 'failed', 'archived'],
        'any',
      ),
    },
    ...alter(unknownStatus),
  },
  'invisible-turn': {
    meaning: 'the turn that a message starts is over at once: active is never seen',
    operations: ['message'],
    parameters: {},
    effect: { kind: 'turn' },
  },
} as const satisfies Readonly<Record<string, FaultRow>>;
