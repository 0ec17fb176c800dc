import { expect, it } from '@jest/globals';
import { sharedEnvironment } from '../../harness/shared-environment';
import { starter } from './starter';

const { open } = sharedEnvironment();

it('limits are shown, changed one by one on the queues that the environment names, and cleared', async () => {
  const environment = await open();
  const { taskQueues } = environment;
  const limits = (...args: string[]) => starter(environment, ['limits', ...args]);
  const row = (requests: string, queue: string, rest: string) =>
    expect.stringMatching(new RegExp(`^${requests} +${queue} +${rest}$`, 'm'));

  const none = row('sends', taskQueues.send, 'none +none +0 +none');
  const shown = await limits('show');
  expect(shown).toMatchObject({ code: 0, stderr: '', stdout: none });
  expect(shown.stdout).toMatch(/^REQUESTS +TASK QUEUE +TOTAL +PER PROJECT +WAITING +WEIGHTS$/m);

  const weights = ['--project-weight', 'docs=3', '--project-weight', 'site=2'];
  const set = await limits('set', '--sends-per-project', '90/h', '--reads-total', '50/s', ...weights);
  const both = '(docs=3|site=2) (docs=3|site=2)';
  expect(set).toMatchObject({ code: 0, stdout: row('sends', taskQueues.send, `none +90/h +0 +${both}`) });
  expect(set.stdout).toEqual(row('reads', taskQueues.read, `50/s +none +0 +${both}`));
  expect(set.stderr).toContain('matching.enableFairness');

  const off = await limits('set', '--sends-per-project', 'off', '--project-weight', 'site=off');
  expect({ code: off.code, stderr: off.stderr }).toEqual({ code: 0, stderr: '' });
  const { sends, reads } = await environment.followUps.limits.get();
  expect([sends.perProject, reads.total]).toMatchObject([null, '50/s']);
  expect([sends.weights, reads.weights]).toEqual([{ docs: 3 }, { docs: 3 }]);

  const tooMany = Array.from({ length: 1_001 }, (_, i) => ['--project-weight', `p${i}=2`]).flat();
  const refused = { code: 1, stderr: expect.stringMatching(/can't be set: too many fairness weight/) };
  expect(await limits('set', ...tooMany)).toMatchObject(refused);
  expect(await limits('clear')).toMatchObject({ code: 0, stdout: none });
});
