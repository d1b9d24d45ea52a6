//! What theory says about queues: closed forms, bounds, and mean value analysis.
//!
//! The oracle that simulated systems are held against. Spans are exact where they come in and floating
//! point inside; rates are per second, the other results in seconds.

use meikyo_units::Nanos;

/// Stations of one kind in a closed network, each as likely to be visited as the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// What reports call it: `sending interface of server`.
    pub name: String,
    /// How much work one operation makes for all of them together.
    pub demand: Nanos,
    /// How many alike stations share the work.
    pub count: u32,
}

/// A closed network: customers that go through queues and delays, operation after operation.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedNetwork {
    /// What one operation takes without waiting, beside the stations' work.
    pub delay: Nanos,
    /// Where customers wait for each other.
    pub stations: Vec<Station>,
}

/// What mean value analysis gives for a number of customers.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanValues {
    /// Operations that all customers together complete a second.
    pub per_s: f64,
    /// The mean time of an operation in seconds, without the delay.
    pub response_s: f64,
    /// For each kind of station, the mean number of customers at all of them.
    pub customers: Vec<f64>,
}

impl ClosedNetwork {
    /// What one operation takes if nobody is in the way, in seconds.
    pub fn unloaded_s(&self) -> f64 {
        let work: f64 = self.stations.iter().map(|station| station.demand.as_secs_f64()).sum();
        self.delay.as_secs_f64() + work
    }

    /// The most operations a second that the busiest kind of station allows, and which it is.
    pub fn capacity_per_s(&self) -> Option<(f64, &Station)> {
        let capacity = |station: &Station| f64::from(station.count) / station.demand.as_secs_f64();
        let least = self.stations.iter().min_by(|a, b| capacity(a).total_cmp(&capacity(b)))?;
        Some((capacity(least), least))
    }

    /// The asymptotic bound of `customers` (Denning and Buzen 1978): no more operations a second are
    /// possible than without waiting, nor than the busiest station allows.
    pub fn bound_per_s(&self, customers: u32) -> f64 {
        let without_waiting = f64::from(customers) / self.unloaded_s();
        self.capacity_per_s().map_or(without_waiting, |(most, _)| without_waiting.min(most))
    }

    /// Exact mean value analysis (Reiser and Lavenberg 1980), for exponential service at every
    /// station and an even choice among those of a kind. Costs `customers` times the kinds.
    pub fn mean_values(&self, customers: u32) -> MeanValues {
        let demands: Vec<(f64, f64)> = self
            .stations
            .iter()
            .map(|station| (station.demand.as_secs_f64(), f64::from(station.count)))
            .collect();
        let delay = self.delay.as_secs_f64();
        let mut values =
            MeanValues { per_s: 0.0, response_s: 0.0, customers: vec![0.0; demands.len()] };
        for present in 1..=customers {
            let times: Vec<f64> = demands
                .iter()
                .zip(&values.customers)
                .map(|((demand, count), customers)| demand * (1.0 + customers / count))
                .collect();
            values.response_s = times.iter().sum();
            values.per_s = f64::from(present) / (delay + values.response_s);
            for (customers, time) in values.customers.iter_mut().zip(times) {
                *customers = values.per_s * time;
            }
        }
        values
    }
}

/// A queue with Poisson arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenQueue {
    /// The mean time between two arrivals.
    pub interarrival: Nanos,
    /// The mean time that one server works for a customer.
    pub service: Nanos,
}

/// What a queue that turns customers away does in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limited {
    /// The share of customers that is turned away.
    pub turned_away_share: f64,
    /// The share of the servers that is busy.
    pub busy_share: f64,
    /// How many customers wait.
    pub queued: f64,
    /// How long those who are served wait for that, in seconds.
    pub wait_s: f64,
}

impl OpenQueue {
    /// The share of `servers` that is busy; 1 or more: the queue grows without end.
    pub fn busy_share(&self, servers: u32) -> f64 {
        self.service.as_secs_f64() / self.interarrival.as_secs_f64() / f64::from(servers)
    }

    /// The mean time in the queue of M/M/c, service excluded, in seconds (Erlang's C formula); none
    /// if the queue grows without end.
    pub fn exponential_wait_s(&self, servers: u32) -> Option<f64> {
        let busy = self.busy_share(servers);
        if busy >= 1.0 {
            return None;
        }
        let offered = busy * f64::from(servers);
        // Erlang's B by its recursion, then C.
        let blocked = (1..=servers).fold(1.0, |blocked, server| {
            offered * blocked / (f64::from(server) + offered * blocked)
        });
        let waits = blocked / (1.0 - busy * (1.0 - blocked));
        Some(waits * self.service.as_secs_f64() / (f64::from(servers) * (1.0 - busy)))
    }

    /// What M/M/c/K does in the mean, where at most `capacity` customers are there, those at the
    /// servers included, and who comes beyond is turned away. It is a birth and death process with as
    /// many states, which the sums over them cost.
    pub fn exponential_with_capacity(&self, servers: u32, capacity: u32) -> Limited {
        let offered = self.busy_share(servers) * f64::from(servers);
        // The probabilities of 0, 1, ... customers, up to a factor: weights that grow too large are
        // scaled down together with the sums of those before.
        let (mut weight, mut sum, mut waiting) = (1.0_f64, 1.0_f64, 0.0_f64);
        for present in 1..=capacity {
            weight *= offered / f64::from(present.min(servers));
            sum += weight;
            waiting += weight * f64::from(present.saturating_sub(servers));
            if sum > 1e200 {
                (weight, sum, waiting) = (weight / sum, 1.0, waiting / sum);
            }
        }
        let turned_away = weight / sum;
        let accepted_per_s = (1.0 - turned_away) / self.interarrival.as_secs_f64();
        Limited {
            turned_away_share: turned_away,
            busy_share: offered * (1.0 - turned_away) / f64::from(servers),
            queued: waiting / sum,
            wait_s: waiting / sum / accepted_per_s,
        }
    }

    /// The mean time in the queue of M/D/1, service excluded, in seconds (Pollaczek and Khinchine);
    /// none if the queue grows without end.
    pub fn constant_wait_s(&self) -> Option<f64> {
        let busy = self.busy_share(1);
        (busy < 1.0).then(|| busy * self.service.as_secs_f64() / (2.0 * (1.0 - busy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs()
    }

    fn station(demand_ms: u64, count: u32) -> Station {
        Station { name: "disk".into(), demand: Nanos::from_millis(demand_ms), count }
    }

    #[test]
    fn open_queues_have_their_textbook_values() {
        // Half busy: M/M/1 waits one service, M/D/1 half of one.
        let queue = OpenQueue { interarrival: Nanos::SECOND, service: Nanos::from_millis(500) };
        assert!(near(queue.exponential_wait_s(1).unwrap(), 0.5));
        assert!(near(queue.constant_wait_s().unwrap(), 0.25));
        // M/M/2 at 3/4: C = 9/14, wait = C / (2 (1 - 3/4)) services.
        let queue = OpenQueue { interarrival: Nanos::SECOND, service: Nanos::from_millis(1500) };
        assert!(near(queue.exponential_wait_s(2).unwrap(), 9.0 / 14.0 / 0.5 * 1.5));
        assert_eq!((queue.exponential_wait_s(1), queue.constant_wait_s()), (None, None));
    }

    #[test]
    fn queues_that_turn_customers_away_have_their_textbook_values() {
        let queue = |service_ms| OpenQueue {
            interarrival: Nanos::SECOND,
            service: Nanos::from_millis(service_ms),
        };
        // M/M/1/K: (1 - r) r^K / (1 - r^(K + 1)), and 1 / (K + 1) where r is 1.
        let half = queue(500).exponential_with_capacity(1, 3);
        assert!(near(half.turned_away_share, 0.5 * 0.125 / (1.0 - 0.0625)));
        assert!(near(half.busy_share, 0.5 * (1.0 - half.turned_away_share)));
        // Weights 1, 1/2, 1/4, 1/8 of 0 to 3: one waits in 1/4, two in 1/8, of 15/8.
        assert!(near(half.queued, (0.25 + 0.25) / 1.875));
        assert!(near(half.wait_s, half.queued / (1.0 - half.turned_away_share)));
        assert!(near(queue(1000).exponential_with_capacity(1, 9).turned_away_share, 0.1));
        // M/M/c/c is Erlang's loss system: two servers, two offered: 2 / (1 + 2 + 2).
        assert!(near(queue(2000).exponential_with_capacity(2, 2).turned_away_share, 0.4));
        // With room for everybody nobody is turned away, and waits are those of M/M/c.
        let wide = queue(1500).exponential_with_capacity(2, 100_000);
        assert!(near(wide.wait_s, queue(1500).exponential_wait_s(2).unwrap()));
        // Overloaded a thousandfold: all but one in a thousand are turned away.
        let flooded = queue(1_000_000).exponential_with_capacity(1, 1_000_000);
        assert!(near(flooded.turned_away_share, 0.999));
    }

    #[test]
    fn one_station_and_a_delay_are_the_machine_repair_model() {
        // Erlang's loss formula: one repairer is busy with probability 1 - 1 / sum of N!/(N-k)! r^k.
        let network =
            ClosedNetwork { delay: Nanos::from_millis(2000), stations: vec![station(500, 1)] };
        let ratio: f64 = 0.25;
        let states = 1.0 + 3.0 * ratio + 6.0 * ratio.powi(2) + 6.0 * ratio.powi(3);
        assert!(near(network.mean_values(3).per_s, (1.0 - 1.0 / states) / 0.5));
    }

    #[test]
    fn stations_of_one_kind_are_the_same_as_each_on_its_own() {
        let delay = Nanos::from_millis(10);
        let together = ClosedNetwork { delay, stations: vec![station(9, 3), station(1, 1)] };
        let apart = vec![station(3, 1), station(3, 1), station(3, 1), station(1, 1)];
        let apart = ClosedNetwork { delay, stations: apart };
        for customers in [0, 1, 2, 17] {
            let (one, other) = (together.mean_values(customers), apart.mean_values(customers));
            assert!(near(one.per_s, other.per_s) || customers == 0);
            assert!(near(one.customers[0], other.customers[..3].iter().sum()) || customers == 0);
        }
        assert!(near(together.bound_per_s(1), 50.0));
        assert!(near(together.bound_per_s(1000), 3.0 / 0.009));
        let (_, busiest) = together.capacity_per_s().unwrap();
        assert_eq!(busiest.count, 3);
    }
}
