import { expect, it, jest } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import type * as Updates from '../../src/workflows/updates';

type Update = () => void;

const updates = new Map<string, { readonly take: Update; readonly validator: Update }>();

jest.mock('@temporalio/workflow', () => ({
  ApplicationFailure,
  defineUpdate: (name: string) => ({ name }),
  setHandler: ({ name }: { readonly name: string }, take: Update, options: { readonly validator: Update }) =>
    updates.set(name, { take, ...options }),
}));

it('the last hundred updates that the server takes in a run are kept for what unblocks it', () => {
  const { updatesOfRun } = jest.requireActual<typeof Updates>('../../src/workflows/updates');
  const set = updatesOfRun();
  const taken: string[] = [];
  for (const name of ['pause', 'resume'])
    set(name, () => taken.push(name), { description: '', unblocks: name === 'resume' });
  const ask = (name: string) => {
    updates.get(name)?.validator();
    updates.get(name)?.take();
  };
  while (taken.length < 1_900) ask(taken.length % 2 === 0 ? 'pause' : 'resume');
  expect(() => {
    ask('pause');
  }).toThrow('has taken 1,900 updates');
  while (taken.length < 2_000) ask('resume');
});
