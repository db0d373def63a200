import { expect, it } from 'vitest';
import { serviceLabel } from './service';

it('shows no service where spans name none', () => {
  expect(['cart', 'empty-service-name', 'missing-service-name'].map(serviceLabel)).toEqual(['cart', '(no service name)', '(no service name)']);
});
