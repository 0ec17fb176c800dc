import type { NewJob } from './jobs';

export interface SeedJob extends NewJob {
  readonly projectId: string;
  readonly id: string;
  /** What a message to it leads to, for the table that the program prints. */
  readonly story: string;
}

/** One job of every kind, so that each way in which a follow-up can end is one command away. */
export const SEED_JOBS: readonly SeedJob[] = [
  { projectId: 'docs', id: 'job-1', story: 'opens its first pull request' },
  {
    projectId: 'docs',
    id: 'job-2',
    pullRequest: true,
    story: 'adds to its pull request; the link stays the same',
  },
  { projectId: 'docs', id: 'job-3', status: 'failed', story: 'comes back to life and opens a pull request' },
  {
    projectId: 'docs',
    id: 'job-4',
    status: 'active',
    // The running turn lasts long enough to be met by a person who has just started the sandbox.
    turns: [{ durationMs: 120_000 }, {}],
    story: 'works for two minutes; a message interrupts that',
  },
  { projectId: 'docs', id: 'job-5', status: 'archived', pullRequest: true, story: 'refuses messages' },
  {
    projectId: 'docs',
    id: 'job-nochange',
    turn: { outcome: 'no-change' },
    story: 'changes nothing: no link',
  },
  { projectId: 'docs', id: 'job-fails', turn: { outcome: 'failed' }, story: 'fails' },
  {
    projectId: 'docs',
    id: 'job-newlink',
    pullRequest: true,
    turn: { outcome: 'new-pull-request' },
    story: 'opens another pull request: the link changes',
  },
];
