import { describe, expect, it } from '@jest/globals';
import { followUpWorkflowId, percentEncode } from '../../../src/core/ids';

describe('followUpWorkflowId', () => {
  it.each([
    ['docs', 'job-1', 'r.1_~', 'follow-up:docs:job-1:r.1_~'],
    ['a/b', 'c d', 'e:f', 'follow-up:a%2Fb:c%20d:e%3Af'],
    ['é', '日', '🙂', 'follow-up:%C3%A9:%E6%97%A5:%F0%9F%99%82'],
    ["!'()*", '100%', '+&=', 'follow-up:%21%27%28%29%2A:100%25:%2B%26%3D'],
  ])('encodes every byte but the unreserved ones: %s, %s, %s', (project, job, request, id) => {
    expect(followUpWorkflowId(project, job, request)).toBe(id);
  });

  it('keeps the parts apart, whatever they hold', () => {
    expect(followUpWorkflowId('a:b', 'c', 'd')).not.toBe(followUpWorkflowId('a', 'b:c', 'd'));
  });
});

describe('percentEncode', () => {
  it('can be decoded to what it was', () => {
    const text = "a/b?c#d %é🙂!'()*~";
    expect(decodeURIComponent(percentEncode(text))).toBe(text);
  });
});
