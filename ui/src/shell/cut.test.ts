import { describe, expect, it } from 'vitest';
import { cutAt, cutsOf, shorten } from './cut';

/** A name with a mark where it is cut. */
const parts = (name: string, differs?: number): string => {
  const at = cutAt(name, differs);
  return at ? `${name.slice(0, at)}|${name.slice(at)}` : name;
};

const shown = (...names: string[]): string[] => {
  const cuts = cutsOf(names);
  return names.map((n) => `${n.slice(0, cuts.get(n))}|${n.slice(cuts.get(n)!)}`);
};

describe('cutAt', () => {
  it('leaves short names whole, and keeps the last word of others', () => {
    expect(parts('POST /checkout')).toBe('POST |/checkout');
    expect(parts('SELECT orders')).toBe('SELECT orders');
    expect(parts('com.example.orders.OrderService/listOrders')).toBe('com.example.orders.OrderService|/listOrders');
    expect(parts('shop.Pricing/Quote')).toBe('shop.Pricing|/Quote');
    expect(parts('ts-order-other-service')).toBe('ts-order-other-|service');
    expect(parts('recommendation')).toBe('recommendation');
    expect(parts('a'.repeat(30), 25)).toBe(`${'a'.repeat(25)}|${'a'.repeat(5)}`);
  });

  it('does not divide a character', () => {
    const name = `${'x'.repeat(20)}😀${'y'.repeat(7)}`;
    expect(parts(name, 21)).toBe(`${'x'.repeat(20)}|😀${'y'.repeat(7)}`);
  });
});

describe('shorten', () => {
  it('keeps the beginning and the end', () => {
    const name = 'com.example.orders.OrderService/listOrders';
    expect(shorten(name, 100)).toBe(name);
    expect(shorten(name, 30)).toBe('com.example.orders…/listOrders');
    expect(shorten(name, 6)).toBe('com.e…');
  });
});

describe('cutsOf', () => {
  it('keeps what differs after a common beginning', () => {
    expect(shown('GET /api/v1/users/{id}/orders', 'GET /api/v1/users/{id}/invoices', 'GET /api/v1/users/{id}/orders/{order}/lines')).toEqual([
      'GET /api/v1/users/{id}|/orders', 'GET /api/v1/users/{id}|/invoices', 'GET /api/v1/users/{id}|/orders/{order}/lines',
    ]);
    expect(shown('ts-order-service', 'ts-order-other-service')[1]).toBe('ts-order-|other-service');
    expect(shown('hipster.ProductCatalog/GetProductV1OfTheShopInTheCountry', 'hipster.ProductCatalog/GetProductV2OfTheShopInTheCountry')).toEqual([
      'hipster.ProductCatalog|/GetProductV1OfTheShopInTheCountry', 'hipster.ProductCatalog|/GetProductV2OfTheShopInTheCountry',
    ]);
  });

  it('keeps the ends of names that differ at their beginning', () => {
    expect(shown('cart.default.svc.cluster.local', 'catalog.default.svc.cluster.local')[0]).toBe('cart.default.svc.cluster|.local');
  });

  it('is quick with many names', () => {
    const names = Array.from({ length: 20_000 }, (_, i) => `operation of a service ${i}`);
    expect(cutsOf(names).size).toBe(names.length);
  });
});
