/** What a receiver is told, by Standard Webhooks 1.0.0. docs/notify.md has the fields of `data`: never the prompt. */
export interface Notice {
  readonly type: 'follow-up.ended' | 'follow-up.needs-decision' | 'follow-up-batch.ended';
  /** When it happened, ISO 8601 in UTC. */
  readonly timestamp: string;
  readonly data: { readonly workflowId: string } & Readonly<Record<string, string | number | null>>;
}

export interface NoticeActivities {
  postNotice(notice: Notice): Promise<void>;
}
