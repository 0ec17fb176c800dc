import { expect, it } from '@jest/globals';
import { handleArguments } from '../../src/worker/command-line';

it.each([
  ['--help', false, /--version\.\n\nVariables:\n {2}AGENT_API_BASE_URL\n/],
  ['--version', false, /^1\.2\.3\n$/],
  ['--check-key', true, /^Runs the worker for follow-ups .*\n.*--help/],
])('the worker with the argument %s prints a text and does not start', (argument, isError, pattern) => {
  const output = expect.stringMatching(pattern);
  expect(handleArguments([argument], '1.2.3')).toEqual({ isError, output });
});
