/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/net_int.h"

const struct net_engine *const net_engines[] = {&net_engine_poll, NULL};
