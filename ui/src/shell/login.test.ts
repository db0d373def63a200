import { describe, expect, it } from 'vitest';
import { authorizationHeader } from './login';

describe('authorizationHeader', () => {
  it('encodes a user and a password as UTF-8', () => {
    expect(authorizationHeader('basic', 'jo', 'pä:ss')).toBe('Basic ' + Buffer.from('jo:pä:ss').toString('base64'));
  });
  it('accepts a token with and without its scheme', () => {
    expect(authorizationHeader('bearer', '', ' abc\n')).toBe('Bearer abc');
    expect(authorizationHeader('bearer', '', 'Bearer abc')).toBe('Bearer abc');
  });
});
