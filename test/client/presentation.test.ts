import { describe, expect, it } from '@jest/globals';
import { planFromRequest } from '../../src/client/start';
import { followUpStartOptions } from '../../src/contract/follow-up-start-options';
import { staticDetails } from '../../src/temporal/start-options';

const SECRET_PROMPT = 'the prompt, which is nobody else’s business';
const NAMED = { projectId: 'docs', jobId: 'job-1', prompt: SECRET_PROMPT, requestId: 'r' };
// As long as a workflow id of 255 bytes allows.
const longest = planFromRequest({ ...NAMED, projectId: 'p'.repeat(120), jobId: 'j'.repeat(121) });

describe('what the Web UI shows from the start', () => {
  it('describes the prompt by length and digest, shows nothing of it, and lets no name become markup', () => {
    const plan = planFromRequest({ ...NAMED, projectId: 'a`|b', jobId: '<b>' });
    const [details, { staticSummary }] = [staticDetails(plan), followUpStartOptions(plan)];
    expect(details).toMatch(/\| prompt: \| 45 bytes, sha256 `[0-9a-f]{12}`… \|/);
    expect(details).toContain('| projectId: | `a b` |');
    expect(staticSummary).toContain('`<b>`');
    for (const word of ['prompt,', 'nobody', 'business']) expect(details + staticSummary).not.toContain(word);
  });

  it('keeps within what the server takes', () => {
    expect(Buffer.byteLength(followUpStartOptions(longest).staticSummary)).toBeLessThanOrEqual(400);
    expect(Buffer.byteLength(staticDetails(longest))).toBeLessThan(20_000);
    for (const { value } of followUpStartOptions(longest, '').typedSearchAttributes)
      expect(value.length).toBeLessThanOrEqual(255);
  });
});
