/** The entry `agent-follow-up-client/testing`: a client for the tests of services that start follow-ups. */
export { type Fate, InMemoryFollowUpClient, type Presence } from '../client/testing';
