import { describe, expect, it } from '@jest/globals';
import { planOf, startAttributes, staticDetails } from '../../../src/client/start';
import { REQUEST_OPTIONS } from '../../../src/core/request-options';
import { followUpSummary } from '../../../src/core/names';

const SECRET_PROMPT = 'the prompt, which is nobody else’s business';
const plan = planOf({
  projectId: 'docs',
  jobId: 'job-1',
  prompt: SECRET_PROMPT,
  requestId: 'r',
  deadline: '2h',
});

// As long as a workflow id of 255 bytes allows.
const longest = planOf({ projectId: 'p'.repeat(120), jobId: 'j'.repeat(121), prompt: 'x', requestId: 'r' });

describe('what the Web UI shows from the start', () => {
  it('names project and job in the summary', () => {
    expect(followUpSummary(plan)).toBe('Follow-up to job `job-1` of project `docs`');
  });

  it('describes the prompt by length and digest, and shows nothing of it', () => {
    const details = staticDetails(plan);
    expect(details).toMatch(/\| prompt: \| 45 bytes, sha256 `[0-9a-f]{12}`… \|/);
    for (const word of ['prompt,', 'nobody', 'business'])
      expect(details + followUpSummary(plan)).not.toContain(word);
  });

  it('shows every option of the follow-up', () => {
    const details = staticDetails(plan);
    expect(details).toContain('| deadline: | 2h |');
    for (const option of Object.keys(REQUEST_OPTIONS)) expect(details).toContain(`| ${option}: |`);
  });

  it('keeps within what the server takes', () => {
    expect(Buffer.byteLength(followUpSummary(longest))).toBeLessThanOrEqual(400);
    expect(Buffer.byteLength(staticDetails(longest))).toBeLessThan(20_000);
    for (const { value } of startAttributes(longest)) expect(String(value).length).toBeLessThanOrEqual(255);
  });

  it('lets no name become markup', () => {
    const named = planOf({ projectId: 'a`|b', jobId: '<b>', prompt: 'x', requestId: 'r' });
    expect(staticDetails(named)).toContain('| projectId: | `a b` |');
    expect(followUpSummary(named)).toContain('`<b>`');
  });
});
