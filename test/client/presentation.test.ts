import { describe, expect, it } from '@jest/globals';
import { planFromRequest } from '../../src/client/start';
import { followUpStartOptions } from '../../src/contract/follow-up-start-options';
import { staticDetails } from '../../src/temporal/start-options';

const SECRET_PROMPT = 'a confidential prompt, for the agent’s eyes';
const NAMED = { projectId: 'docs', jobId: 'job-1', prompt: SECRET_PROMPT, requestId: 'r' };
// The IDs are as long as a workflow ID of 255 bytes allows.
const longest = planFromRequest({ ...NAMED, projectId: 'p'.repeat(120), jobId: 'j'.repeat(121) });

describe('the summary and details of a new follow-up in the Web UI', () => {
  it('show the length and digest of the prompt and none of its text, and render no markup from IDs', () => {
    const plan = planFromRequest({ ...NAMED, projectId: 'a`|b', jobId: '<b>' });
    const [details, { staticSummary }] = [staticDetails(plan), followUpStartOptions(plan)];
    expect(details).toMatch(/\| prompt: \| 45 bytes, sha256 `[0-9a-f]{12}`… \|/);
    expect(details).toContain('| projectId: | `a b` |');
    expect(staticSummary).toContain('`<b>`');
    for (const word of ['confidential', 'for the agent', 'eyes'])
      expect(details + staticSummary).not.toContain(word);
  });

  it('are not longer than the Temporal server accepts', () => {
    expect(Buffer.byteLength(followUpStartOptions(longest).staticSummary)).toBeLessThanOrEqual(400);
    expect(Buffer.byteLength(staticDetails(longest))).toBeLessThan(20_000);
    for (const { value } of followUpStartOptions(longest, '').typedSearchAttributes)
      expect(value.length).toBeLessThanOrEqual(255);
  });
});
