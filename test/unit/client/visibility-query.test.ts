import { describe, expect, it } from '@jest/globals';
import { visibilityQuery } from '../../../src/client/list';

describe('the visibility query', () => {
  it('asks for follow-ups only', () => {
    expect(visibilityQuery([])).toBe("WorkflowType = 'followUp'");
  });

  it('quotes values, so that none of them is read as a condition', () => {
    expect(visibilityQuery([['AgentProject', "x' OR WorkflowType = 'other"]])).toBe(
      "WorkflowType = 'followUp' AND AgentProject = 'x'' OR WorkflowType = ''other'",
    );
  });

  it.each([
    ['a"b', "AgentProject STARTS_WITH 'a'"],
    ["x'", "AgentProject STARTS_WITH 'x'"],
    ["'x", 'AgentProject IS NOT NULL'],
    ["it's\\", "AgentProject STARTS_WITH 'it''s'"],
    ['\\', 'AgentProject IS NOT NULL'],
  ])('looks for %j by what stands before the character that no query can hold', (value, clause) => {
    expect(visibilityQuery([['AgentProject', value]])).toBe(`WorkflowType = 'followUp' AND ${clause}`);
  });
});
