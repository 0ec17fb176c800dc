/** The workflows after the same change with `patched`: a follow-up that was already running does not wait. */
import { patched, sleep } from '@temporalio/workflow';
import { followUp as followUpBefore } from '../../../src/workflows';

export * from '../../../src/workflows';

export async function followUp(...input: Parameters<typeof followUpBefore>) {
  if (patched('wait-before-the-first-step')) await sleep(1);
  return followUpBefore(...input);
}
