/** Workflows of another team that send follow-ups. They run on a separate worker without the follow-up plugin. */
import { executeFollowUp, type FollowUpRequest, startFollowUp } from '../../src/entries/workflow';

type Request = FollowUpRequest & { readonly requestId: string };
type Call = readonly [Request, { readonly taskQueue: string }];

export async function startsAndReturns(...call: Call): Promise<string> {
  return (await startFollowUp(...call)).workflowId;
}

export async function waits(...call: Call): Promise<string | null> {
  return (await executeFollowUp(...call)).prLink;
}

export async function startsTwice(...call: Call): Promise<unknown> {
  const [first, second] = [await startFollowUp(...call), await startFollowUp(...call)];
  const [one, two] = [await first.result(), await second.result()];
  return { attached: [first.attached, second.attached], links: [one.prLink, two.prLink] };
}

export async function sendsAnotherPrompt(...[request, options]: Call): Promise<string> {
  await startFollowUp(request, options);
  const other = await startFollowUp({ ...request, prompt: 'Another message.' }, options);
  return (await other.result()).status;
}

export async function sendsNothing(...[request, options]: Call): Promise<void> {
  await startFollowUp({ ...request, prompt: '' }, options);
}
