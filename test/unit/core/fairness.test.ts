import { describe, expect, it } from '@jest/globals';
import { fairnessKey } from '../../../src/core/ids';

describe('the fairness key of a project', () => {
  it('is its id', () => {
    expect(fairnessKey('docs')).toBe('docs');
    expect(fairnessKey('x'.repeat(64))).toBe('x'.repeat(64));
  });

  it('is a hash where the id has more than 64 bytes, and another one for another id', () => {
    const key = fairnessKey('ü'.repeat(33));
    expect(key).toMatch(/^hash-[0-9a-f]{16}$/);
    expect(fairnessKey('ü'.repeat(33))).toBe(key);
    expect(fairnessKey('ü'.repeat(34))).not.toBe(key);
  });
});
